import { writeFileSync } from 'node:fs'
import { renderMarkdown } from './markdown.ts'
import { renderOpenrpc } from './openrpc.ts'

/**
 * Write the documents that are made from the schemas: `node protocol/scripts/generate.ts`. A test fails when they
 * differ from what this would write.
 */
writeFileSync(new URL('../openrpc.json', import.meta.url), renderOpenrpc())
writeFileSync(new URL('../../docs/protocol.md', import.meta.url), renderMarkdown())
