import { spawn } from 'node:child_process'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { tempDir } from '../../server/test/daemon.ts'
import { textItem } from '../../server/test/frames.ts'
import { Server, SocketPeer } from '../../server/test/serving.ts'

const PYTHON = fileURLToPath(new URL('../../.venv/bin/python', import.meta.url))
const ADDS = 100

/** Adds to a memory, one after another; then says in which order it sees all items. */
const CLIENT = `
import asyncio, sys
from autogen_core.memory import MemoryContent
from mnem_autogen import MnemosyneMemory

async def main():
    endpoint, name, adds = sys.argv[1], sys.argv[2], int(sys.argv[3])
    memory = MnemosyneMemory("shared", endpoint=endpoint)
    for number in range(adds):
        await memory.add(MemoryContent(content=f"{name} {number}", mime_type="text/plain"))
    print("added", flush=True)
    sys.stdin.readline()
    for result in (await memory.query()).results:
        print(result.content)

asyncio.run(main())
`

/** A process with the Python client; gives when it has added, and after `look` what it sees. */
function python(endpoint: string, name: string) {
  const child = spawn(PYTHON, ['-c', CLIENT, endpoint, name, String(ADDS)], {
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  let output = ''
  const added = new Promise<void>((resolve) => {
    child.stdout.on('data', (chunk) => {
      output += chunk
      if (output.includes('added\n')) resolve()
    })
  })
  const ended = new Promise((resolve) => child.once('close', resolve))
  return {
    added,
    look: async () => {
      child.stdin.end('\n')
      await ended
      return output.trim().split('\n').slice(1)
    },
  }
}

test('two Python processes and a raw socket of another language share a memory: none lost, one order for all', async () => {
  const path = join(tempDir(), 'm.sock')
  const server = await Server.start({ args: ['--listen', `unix:${path}`, '--listen', 'tcp:127.0.0.1:0'] })
  const first = python(`unix://${path}`, 'first')
  const second = python(`tcp://127.0.0.1:${server.port('tcp')}`, 'second')
  const raw = await new SocketPeer(path).hello()
  for (let number = 0; number < ADDS; number++)
    await raw.result('add', { memory: 'shared', items: [textItem(`raw ${number}`)] })
  await Promise.all([first.added, second.added])
  const { items } = await raw.result('query', { memory: 'shared' })
  const seen: string[] = items.map(({ content }: { content: { text: string } }) => content.text)
  expect(seen).toHaveLength(3 * ADDS)
  for (const name of ['first', 'second', 'raw'])
    expect(seen.filter((text) => text.startsWith(`${name} `))).toEqual(
      Array.from({ length: ADDS }, (_, number) => `${name} ${number}`),
    )
  expect(await first.look()).toEqual(seen)
  expect(await second.look()).toEqual(seen)
  const { commits } = await raw.result('log', { memory: 'shared', limit: 1000 })
  expect(commits).toHaveLength(3 * ADDS)
})
