/** Values that the examples of several methods share. */

export const COMMIT_ID = '5a1e5f4e2b7c9d80316a4f0e8d2c7b6a95f3e1d0c4b8a79682735465a0b1c2d3'
export const PARENT_ID = '0c9d8e7f6a5b4c3d2e1f00112233445566778899aabbccddeeff001122334455'
export const STATE_ID = 'e2d1c0b9a8978685746352413020100ffeeddccbbaa99887766554433221100f'

export const ITEM = {
  id: 'prefs:0000000007',
  content: { type: 'text', text: 'Likes metric units' },
  mime_type: 'text/plain',
}

export const COMMIT = {
  id: COMMIT_ID,
  parents: [PARENT_ID],
  state: STATE_ID,
  message: 'add item to prefs',
  author: 'agent',
  time: 1_760_000_000_000,
}

export const LISTING = { commit: COMMIT_ID, epoch: 0, branch: 'main', count: 1, mode: 'full', items: [ITEM] }
