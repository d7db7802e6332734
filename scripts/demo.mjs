import { join } from 'node:path'
import { pass, ROOT, VENV_PYTHON } from './run.mjs'
import { fail } from './say.mjs'
import { setup } from './setup.mjs'

try {
  await setup()
  process.exitCode = (await pass(VENV_PYTHON, [join(ROOT, 'examples', 'remembering_agent.py')])) ?? 1
} catch (error) {
  fail(error)
}
