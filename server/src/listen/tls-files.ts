import { createPrivateKey, X509Certificate } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { createSecureContext } from 'node:tls'
import type { Config } from '../config/options.ts'
import { UsageError } from '../usage.ts'

/** What a TLS server is made with: PEM texts. */
export interface TlsFiles {
  cert: Buffer
  key: Buffer
  ca: Buffer | undefined
}

/** The files that TLS is read from, as far as they are given. */
export function tlsFileNames({ tls_cert, tls_key, tls_ca }: Config): string[] {
  return [tls_cert, tls_key, tls_ca].filter((name) => name !== undefined)
}

/** Read certificate, key and CA and see that they fit together. Throws `UsageError`, without a word of the key. */
export function readTlsFiles({ tls_cert, tls_key, tls_ca }: Config): TlsFiles {
  if (tls_cert === undefined || tls_key === undefined)
    throw new UsageError('A tls: address needs --tls-cert and --tls-key; give both.')
  const files = {
    cert: read(tls_cert),
    key: read(tls_key),
    ca: tls_ca === undefined ? undefined : read(tls_ca),
  }
  const certificate = attempt(tls_cert, 'no certificate in PEM', () => new X509Certificate(files.cert))
  const key = attempt(tls_key, 'no unencrypted private key in PEM', () => createPrivateKey(files.key))
  if (!certificate.checkPrivateKey(key))
    throw new UsageError(
      `${tls_key} is not the key of the certificate in ${tls_cert}; give two that belong together.`,
    )
  attempt(tls_cert, 'no certificate chain that TLS can use', () =>
    createSecureContext({ cert: files.cert, key: files.key }),
  )
  const { ca } = files
  if (ca !== undefined && tls_ca !== undefined)
    attempt(tls_ca, 'no certificate in PEM', () => new X509Certificate(ca))
  return files
}

function attempt<T>(file: string, otherwise: string, work: () => T): T {
  try {
    return work()
  } catch {
    throw new UsageError(`${file} holds ${otherwise}; give another file.`)
  }
}

function read(file: string): Buffer {
  try {
    return readFileSync(file)
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    throw new UsageError(`${file} can't be read (${code}); correct its name or its permissions.`)
  }
}
