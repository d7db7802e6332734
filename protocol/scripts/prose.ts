/** What docs/protocol.md says beside the tables that are made from the schemas. */
export const PROSE = {
  session: `<!-- Made by protocol/scripts/generate.ts from the schemas in protocol/src. Do not edit. -->

# Wire protocol, version 1

JSON-RPC 2.0. Whoever writes a client in another language finds here all that it relies on; the same as data is in
\`protocol/openrpc.json\`.

## Framing

Each message, either way, is one frame:

\`\`\`
Content-Length: <bytes of the body>\\r\\n
\\r\\n
<body: JSON in UTF-8>
\`\`\`

- \`Content-Length\` counts bytes, not characters. A header \`Content-Type\` is allowed as long as it names no charset but
  utf-8; no other header is. The header block has at most 4096 bytes, the body at most \`limits.frame_bytes\`.
- A frame that can't be read (header, length, UTF-8, JSON) is answered with \`parse_error\` or \`too_large\` and \`"id": null\`,
  then the connection closes: what follows it can't be trusted. Requests taken before are still answered.
- JSON that is no request (a batch, \`"id": null\`, no \`"jsonrpc": "2.0"\`, no method) is answered with
  \`invalid_request\`; the connection stays.
- The id of a request is a string or an integer up to 2^53-1. It must not be in use by a request under way; \`1\` and \`"1"\`
  count as the same.
- \`params\` is an object. Fields that are not listed are refused, so that a typo is never silence. Clients ignore fields of
  results that they don't know, so that servers can grow.

## Session

1. The first request is \`initialize\`; before it everything is \`not_initialized\`. Requests may be sent right behind it.
2. Then requests in any number; answers come as they are ready. Requests about one memory take effect in the order in which
   they were sent, on one connection.
3. \`shutdown\` is answered once everything taken before is durable and answered; requests after it are \`shutting_down\`.
   Then the notification \`exit\`. The end of the input does the same as both.

Over a socket each connection is a session of its own, and \`shutdown\` and \`exit\` end it alone. A server that asks for a token
answers \`initialize\` without a good one as \`unauthorized\` and closes the connection. A method says which verb the token must
hold; what the token does not cover is \`unauthorized\`, whether it exists or not, and \`memories\` leaves it out. Where too
many connections are open, a new one is told \`busy\` with \`"id": null\` and closed. A server may close a connection that
is idle, that takes none of its answers, or whose token was withdrawn; requests that it has not answered may be sent again on
another one, writes with their \`idempotency_key\`.

\`$/cancelRequest\` cancels: a write is either cancelled before its commit (\`cancelled\`) or done and answered. A peer that does
not read its answers is read no further until it does.`,

  shapes: `## Shapes

Times are Unix milliseconds. Numbers keep their kind and every digit: \`1\` and \`1.0\` differ; integers run from -2^63 to 2^64-1,
and what lies outside is \`invalid_params\`, as are duplicate keys and halves of surrogate pairs, wherever they stand. Objects
under \`json\` and \`metadata\` keep the order of their keys. A field marked \`?\` may be left out.`,

  errors: `## Errors

\`{"code", "message", "data": {"kind", "retryable", …}}\`. Decide on \`kind\` alone; \`message\` is a sentence for people that says
what to do, and holds nothing of what is remembered. Every request can fail as \`invalid_params\`, \`not_initialized\`,
\`unauthorized\`, \`shutting_down\`, \`too_large\` or \`internal\`. \`path\` is relative to \`params\`, such as
\`items[0].content.json.a\`.`,
}
