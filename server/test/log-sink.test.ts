import { spawn } from 'node:child_process'
import { closeSync, constants, openSync, readSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { LogSink } from '../src/log-sink.ts'
import { tempDir } from './daemon.ts'

/** Both ends of a named pipe that never blocks. */
async function pipe(): Promise<{ reader: number; writer: number }> {
  const path = join(tempDir(), 'pipe')
  await new Promise((resolve) => spawn('mkfifo', [path]).on('exit', resolve))
  const reader = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK)
  const writer = openSync(path, constants.O_WRONLY | constants.O_NONBLOCK)
  onTestFinished(() => {
    for (const fd of [reader, writer]) {
      try {
        closeSync(fd)
      } catch {
        // The test closed it.
      }
    }
  })
  return { reader, writer }
}

function readAll(fd: number): string {
  const parts: Buffer[] = []
  const buffer = Buffer.alloc(1024 * 1024)
  try {
    for (let read = readSync(fd, buffer); read > 0; read = readSync(fd, buffer)) {
      parts.push(Buffer.from(buffer.subarray(0, read)))
    }
  } catch {
    // Empty for now.
  }
  return Buffer.concat(parts).toString()
}

describe.skipIf(process.platform === 'win32')('where log lines go', () => {
  it('writes a line at once', async () => {
    const { reader, writer } = await pipe()
    new LogSink(writer).write('one\n')
    expect(readAll(reader)).toBe('one\n')
  })

  it('keeps what a full pipe does not take, in order, and says how much it had to drop', async () => {
    const { reader, writer } = await pipe()
    const sink = new LogSink(writer)
    const line = (i: number) => `${String(i).padStart(9, '0')}${'x'.repeat(990)}\n`
    const count = 3000
    for (let i = 0; i < count; i++) sink.write(line(i))
    let text = ''
    for (let more = readAll(reader); more !== ''; more = readAll(reader)) {
      text += more
      sink.flush()
    }
    const lines = text.trimEnd().split('\n')
    const last = JSON.parse(lines.pop() as string)
    expect(lines).toEqual(lines.map((_, i) => line(i).trimEnd()))
    expect(lines.length).toBeGreaterThan(1000)
    expect(last).toMatchObject({ level: 'warn', dropped: count - lines.length })
  })

  it('gives up on a reader that is gone', async () => {
    const { reader, writer } = await pipe()
    const sink = new LogSink(writer)
    closeSync(reader)
    sink.write('one\n')
    sink.write('two\n')
    sink.flush()
  })
})
