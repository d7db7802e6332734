import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { type CborValue, decode, encode } from '../src/codec.ts'
import { objectId, toHex } from '../src/id.ts'
import { type JsonValue, readJson } from '../src/json.ts'
import { encodeCommit, encodeNode, encodeState, type NodeFields } from '../src/object.ts'

type Fields = Map<string, JsonValue>

const file = readFileSync(new URL('./vectors/objects.json', import.meta.url), 'utf8')
const vectors = (readJson(file) as Map<string, Fields[]>).get('objects') as Fields[]

/** Ids stand as hex in the vectors' JSON and as bytes in CBOR: as the plain encoder needs it. */
function withIds(object: Fields): CborValue {
  const bytes = (hex: JsonValue | undefined) => Buffer.from(hex as string, 'hex')
  const out = new Map<string, CborValue>(object as Map<string, CborValue>)
  if (object.get('kind') === 'state') {
    out.set('nodes', new Map(Array.from(object.get('nodes') as Fields, ([id, hex]) => [id, bytes(hex)])))
  }
  if (object.get('kind') === 'commit') {
    out.set('parents', (object.get('parents') as JsonValue[]).map(bytes))
    out.set('state', bytes(object.get('state')))
  }
  return out
}

/** The same object through the encoders that the store uses. */
function encodeAsStored(object: Fields): Buffer {
  const get = <T>(key: string) => object.get(key) as T
  if (get('kind') === 'state') {
    return encodeState(
      Array.from(get<Fields>('nodes'), ([id, hex]) => [id, Buffer.from(hex as string, 'hex')]),
    )
  }
  if (get('kind') === 'commit') {
    return encodeCommit({
      parents: get<string[]>('parents').map((hex) => Buffer.from(hex, 'hex')),
      state: Buffer.from(get<string>('state'), 'hex'),
      message: get('message'),
      author: get('author'),
      time: get('time'),
    })
  }
  const fields: NodeFields = { content: '', content_kind: get('content_kind'), event_time: get('event_time') }
  const provenance = get<Map<string, string> | undefined>('provenance')
  if (provenance !== undefined) fields.provenance = Object.fromEntries(provenance)
  return encodeNode(get('id'), fields, get('content'))
}

test('there are sixteen golden vectors', () => {
  expect(vectors).toHaveLength(16)
})

test.each(vectors.map((vector) => [vector.get('name') as string, vector] as const))(
  'vector %s',
  (_name, vector) => {
    const object = vector.get('object') as Fields
    const cbor = vector.get('cbor') as string
    expect(encode(withIds(object)).toString('hex')).toBe(cbor)
    expect(encodeAsStored(object).toString('hex')).toBe(cbor)
    expect(toHex(objectId(Buffer.from(cbor, 'hex')))).toBe(vector.get('id'))
    expect(encode(decode(Buffer.from(cbor, 'hex'))).toString('hex')).toBe(cbor)
  },
)
