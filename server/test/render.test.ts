import { JsonText } from '@mnem/core'
import { describe, expect, it } from 'vitest'
import { renderContext } from '../src/render.ts'

const item = (content: string) => new JsonText(`{"id":"m:0000000000","content":${content},"mime_type":"a"}`)

describe('the text that a model is shown', () => {
  it('is empty for no items', () => {
    expect(renderContext([])).toBe('')
  })

  it('numbers texts as they are, shows dicts as their stored JSON, and names what is no text', () => {
    const items = [
      item('{"type":"text","text":"two\\nlines é"}'),
      item('{"type":"text","text":""}'),
      item('{"type":"json","json":{"b":1.0,"a":18446744073709551615,"1":null}}'),
      item('{"type":"bytes","base64":"AA=="}'),
      item('{"type":"image","base64":"AA=="}'),
    ]
    expect(renderContext(items)).toBe(
      '\nRelevant memory content (in chronological order):\n' +
        '1. two\nlines é\n2. \n3. {"b":1.0,"a":18446744073709551615,"1":null}\n4. <bytes>\n5. <image>\n',
    )
  })
})
