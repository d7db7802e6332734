import type { Listing } from '@mnem/core'
import { updateContext } from '@mnem/protocol'
import { renderContext } from '../render.ts'
import { failure } from '../session/failure.ts'
import { defineHandler } from './handler.ts'

export const handleUpdateContext = defineHandler(
  updateContext,
  'read',
  async ({ stores }, { render, ...request }) => {
    let listing = await stores.listing(request)
    if (render !== true || listing.mode === 'unchanged') return listing
    if (listing.mode === 'appended') {
      // The text numbers all lines, so it is made of all items.
      const { have: _, ...whole } = request
      listing = await stores.listing(whole)
    }
    return { ...listing, text: renderContext(itemsOf(listing)) }
  },
)

function itemsOf(listing: Listing) {
  if (listing.more === true) {
    throw failure(
      'too_large',
      'The memory is too large to be rendered in one answer; give max_items or max_bytes, or leave out render.',
    )
  }
  return listing.items ?? []
}
