import { type Command, readCommandLine } from './command-line.ts'
import { orComplain } from './commands/ending.ts'
import { VERSION } from './version.ts'

/** Run the command line. Ends the process when the work is done. */
export async function main(argv: string[]): Promise<void> {
  // Before anything that takes time: a parent that dies meanwhile is not taken for the one that came after it.
  const parent = process.ppid
  let command: Command
  try {
    command = readCommandLine(argv, process.env)
  } catch (error) {
    return orComplain(error)
  }
  await run(command, parent)
}

// Each command is loaded when it is asked for: a probe should not wait for what only a server needs.
async function run(command: Command, parent: number): Promise<void> {
  switch (command.name) {
    case 'help':
      process.stdout.write(command.text)
      return
    case 'version':
      process.stdout.write(`mnem-sidecar ${VERSION}\n`)
      return
    case 'stdio': {
      const { runStdio } = await import('./commands/stdio.ts')
      return runStdio({ ...command, parent: command.parentPid ?? parent })
    }
    case 'serve': {
      const { runServe } = await import('./commands/serve.ts')
      return runServe(command.flags, process.env)
    }
    case 'health': {
      const { runHealth } = await import('./commands/health.ts')
      return runHealth(command, process.env)
    }
    case 'token': {
      const { runToken } = await import('./commands/token.ts')
      return runToken(command.action, command.options)
    }
  }
}
