import { type JsonText, parseJson } from '@mnem/core'

type Shown =
  | { type: 'text'; text: string }
  | { type: 'json'; json: JsonText }
  | { type: 'bytes' }
  | { type: 'image' }

const TITLE = '\nRelevant memory content (in chronological order):\n'

/**
 * The text that AutoGen's ListMemory puts into a model's context, for text items byte for byte. A dict is shown as its
 * JSON; Python's own `str(dict)` is only to be had in Python.
 */
export function renderContext(items: readonly JsonText[]): string {
  if (items.length === 0) return ''
  const lines = items.map((item, index) => `${index + 1}. ${lineOf(item)}`)
  return `${TITLE}${lines.join('\n')}\n`
}

function lineOf(item: JsonText): string {
  const { content } = parseJson(item.text, { verbatim: (key) => key === 'json' || key === 'metadata' }) as {
    content: Shown
  }
  switch (content.type) {
    case 'text':
      return content.text
    case 'json':
      return content.json.text
    default:
      return `<${content.type}>`
  }
}
