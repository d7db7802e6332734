/** Stands in for the core's text of a JSON object. */
class Raw {
  readonly text: string
  constructor(text: string) {
    this.text = text
  }
}

/** A value as the transport hands it on: objects under `json` and `metadata` are texts. */
export function received(value: unknown): unknown {
  return JSON.parse(JSON.stringify(value), (key, member) =>
    (key === 'json' || key === 'metadata') && isObject(member) ? new Raw(JSON.stringify(member)) : member,
  )
}

function isObject(value: unknown): boolean {
  return value !== null && typeof value === 'object' && !Array.isArray(value)
}
