// A server that the test plays: what it answers to each message is a function of the test's, all else
// is as a plain legacy server has it.
import http from 'node:http';

export const INFO =
  { protocolVersion: '2025-11-25', capabilities: {}, serverInfo: { name: 's', version: '1' } };

export const json = (response, body, headers = {}, status = 200) =>
  response.writeHead(status, { 'content-type': 'application/json', ...headers })
    .end(JSON.stringify(body));
export const result = (response, { id }, value, headers) =>
  json(response, { jsonrpc: '2.0', id, result: value }, headers);

// play(method, message, { request, response }) returns a result, or writes the answer itself and
// returns nothing. `initialize` and notifications are answered. Every request is kept in `seen`.
export async function played(t, play, { create = http.createServer, options = {} } = {}) {
  const seen = [];
  const server = create(options, async (request, response) => {
    const chunks = [];
    for await (const piece of request) chunks.push(piece);
    const message = chunks.length ? JSON.parse(Buffer.concat(chunks)) : undefined;
    seen.push({ http: request.method, url: request.url, headers: request.headers, message,
      at: performance.now() });
    const value = await play(message?.method, message, { request, response });
    if (response.headersSent || response.destroyed) return;
    if (message?.method === undefined && !value) response.writeHead(405).end();
    else if (message?.id === undefined && !value) response.writeHead(202).end();
    else if (message.method === 'server/discover' && !value) response.writeHead(400).end();
    else result(response, message, message.method === 'initialize' ? INFO : value);
  });
  await new Promise(resolve => server.listen(0, '127.0.0.1', resolve));
  t.after(() => { server.closeAllConnections(); server.close(); });
  const { port } = server.address();
  const scheme = options.key ? 'https' : 'http';
  return { port, seen, server, url: `${scheme}://127.0.0.1:${port}/mcp`,
    asked: method => seen.filter(row => row.message?.method === method) };
}
