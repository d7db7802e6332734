import { show } from '@mnem/protocol'
import { defineHandler } from './handler.ts'

export const handleShow = defineHandler(show, 'read', async ({ stores }, params) => {
  const listing = await stores.listing({ ...params, redacted: true })
  if (listing.commit === null) return { ...listing, commit_info: null }
  // The commit that was listed, and not what the head has become since.
  const { memory, branch } = params
  return { ...listing, commit_info: await stores.commit({ memory, branch, at: listing.commit }) }
})
