import type { Stores } from '../src/stores.ts'
import { MEMORY } from './model.ts'

/** The whole export of a memory. */
export async function exported(stores: Stores, name = MEMORY): Promise<string> {
  let whole = ''
  for (let after: string | undefined; ; ) {
    const part = await stores.exportPart({ memory: name, after })
    whole += part.text
    if (part.next === undefined) return whole
    after = part.next
  }
}

/** Import in pieces; gives the commit that it stands on. Leaves nothing behind if it fails. */
export async function imported(
  stores: Stores,
  name: string,
  export_: string,
  { piece = 1000, force }: { piece?: number; force?: boolean } = {},
): Promise<string> {
  const importer = stores.beginImport(name, { force })
  try {
    for (let at = 0; at < export_.length; at += piece) await importer.take(export_.slice(at, at + piece))
    return (await importer.finish()).commit
  } catch (error) {
    await importer.abort()
    throw error
  }
}
