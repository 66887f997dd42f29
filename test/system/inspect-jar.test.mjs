// The cookie jar at the client: [C6] to the letter for `limpet inspect` on both transports, behind a
// naive proxy and behind HAProxy; [C5] by byte capture; the order towards the wire of [C4].
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { suite, test } from 'node:test';
import { until } from './lib/flow.mjs';
import { folder } from './lib/gateway.mjs';
import { inspect } from './lib/inspect.mjs';
import { rawAnswer, rawPeer } from './lib/raw.mjs';
import { AFFINITY, balancer, haproxy } from './lib/sticky.mjs';

const LOST = 'Error POSTing to endpoint (HTTP 404): {"error":"Session not found"}';
const QUIET = '--no-notification-stream';
const RESULT = { protocolVersion: '2025-11-25', capabilities: {}, serverInfo: { name: 's', version: '1' } };

for (const [what, begin] of [['a naive proxy', balancer], ['HAProxy', haproxy]]) {
  suite(`[C6] two pods behind ${what}`, () => {
    for (const [transport, where] of [['streamable-http', '/mcp'], ['sse', '/sse']]) {
      const flags = ['--json', QUIET, '--transport', transport];

      test(`${transport}, off: the list fails, and inspect says how`, async t => {
        const proxy = await begin(t);
        const result = await inspect([...flags, proxy.url(where), 'tools']);
        assert.equal(result.code, 1);
        assert.ok(result.stderr.includes(`limpet: ${LOST}\n`), result.stderr);
        assert.deepEqual(result.json.failure,
          { status: 404, message: LOST, body: '{"error":"Session not found"}' });
      });

      test(`${transport}, on: one pod for every request, and the list is exactly ping`, async t => {
        const proxy = await begin(t);
        const pods = new Set();
        for (let i = 0; i < 6; i++) {
          proxy.log.length = 0;
          const result = await inspect([...flags, '--cookie-jar', proxy.url(where), 'tools']);
          assert.equal(result.code, 0, result.stderr);
          assert.deepEqual(result.json.tools.map(tool => tool.name), ['ping']);
          // discover, initialize, initialized, tools/list, DELETE; or GET and three POSTs
          const count = transport === 'sse' ? 4 : 5;
          await until(() => proxy.log.length >= count, 3000, `${count} requests in the log`);
          assert.equal(new Set(proxy.log.map(row => row.pod)).size, 1, JSON.stringify(proxy.log));
          pods.add(proxy.log[0].pod);
        }
        assert.equal(pods.size, 2, 'each session has a jar of its own');
      });
    }
  });
}

test('off: initialize itself works', async t => {
  const proxy = await balancer(t);
  const result = await inspect([QUIET, '--era', 'legacy', proxy.url('/mcp'), 'info']);
  assert.equal(result.code, 0, result.stderr);
  assert.match(result.stdout, /^server +pod-[ab] 1$/m);
});

test('a hint is given where the session is lost without a jar', async t => {
  const proxy = await balancer(t);
  const result = await inspect([QUIET, proxy.url('/mcp'), 'tools']);
  assert.match(result.stderr, /try --cookie-jar/);
});

test('the setting of mcp.json, and only an explicit true', async t => {
  const { writeFileSync } = await import('node:fs');
  const proxy = await balancer(t);
  const cwd = folder(t);
  const list = async cookieJar => {
    writeFileSync(path.join(cwd, 'mcp.json'), JSON.stringify({ mcpServers: { pods: {
      type: 'streamable-http', url: proxy.url('/mcp'), cookieJar, suppressNotificationStream: true } } }));
    return (await inspect(['pods', 'tools'], { cwd })).code;
  };
  assert.equal(await list(true), 0);
  for (const value of [false, 'true', 1, null]) assert.equal(await list(value), 1);
});

// --- bytes ---

// A server by raw bytes, always the same: whatever differs between two runs is the client's doing.
async function recorder(t, cookie) {
  const set = cookie ? { 'Set-Cookie': `${AFFINITY}=pod-1; Path=/` } : {};
  const json = (connection, body, more = {}) => connection.send(rawAnswer(200,
    { 'Content-Type': 'application/json', ...set, ...more }, JSON.stringify(body)));
  return rawPeer(t, async (connection, request, peer) => {
    const message = request.body ? JSON.parse(request.body) : {};
    const result = body => ({ jsonrpc: '2.0', id: message.id, result: body });
    if (request.target.startsWith('/sse')) {
      peer.stream = connection;
      await connection.send('HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n' +
        `${cookie ? `Set-Cookie: ${AFFINITY}=pod-1\r\n` : ''}\r\n` +
        'event: endpoint\ndata: /messages?sessionId=S-1\n\n');
    } else if (request.target.startsWith('/messages')) {
      await connection.send(rawAnswer(202, set));
      const body = { initialize: RESULT, 'tools/list': { tools: [] } }[message.method];
      if (body) await peer.stream.send(`data: ${JSON.stringify(result(body))}\n\n`);
    } else if (message.method === 'initialize') {
      await json(connection, result(RESULT), { 'Mcp-Session-Id': 'S-1' });
    } else if (message.method === 'tools/list') {
      await json(connection, result({ tools: [] }));
    } else {
      await connection.send(rawAnswer(message.method ? 202 : 200, set));
    }
  });
}

const TARGETS = { 'streamable-http': '/mcp', sse: '/sse' };

async function bytesOf(t, transport, { cookie, jar }) {
  const peer = await recorder(t, cookie);
  const url = peer.url.replace('/mcp', TARGETS[transport]);
  const result = await inspect([QUIET, '--era', 'legacy', '--transport', transport,
    ...(jar ? ['--cookie-jar'] : []), url, 'tools']);
  assert.equal(result.code, 0, result.stderr);
  return peer.requests.map(request => `${request.head}\r\n\r\n${request.body}`
    .replaceAll(String(peer.port), 'PORT'));
}

const BODY = {
  initialize: '{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25",' +
    '"capabilities":{},"clientInfo":{"name":"limpet","version":"VERSION"}}}',
  initialized: '{"jsonrpc":"2.0","method":"notifications/initialized"}',
  list: '{"jsonrpc":"2.0","id":2,"method":"tools/list"}',
};
const POST = ['Host: 127.0.0.1:PORT', 'Content-Type: application/json',
  'Accept: application/json, text/event-stream'];
const AGENT = 'User-Agent: limpet/VERSION';
const SESSION = ['Mcp-Session-Id: S-1', 'MCP-Protocol-Version: 2025-11-25'];
const request = (line, fields, body) => [line, ...fields,
  ...(body ? [`Content-Length: ${body.replace('VERSION', '0.1.0').length}`] : []), '', body ?? '']
  .join('\r\n');

// What went over the wire before there was a jar, to the byte.
const WITHOUT = {
  'streamable-http': [
    request('POST /mcp HTTP/1.1', [...POST, AGENT], BODY.initialize),
    request('POST /mcp HTTP/1.1', [...POST, ...SESSION, AGENT], BODY.initialized),
    request('POST /mcp HTTP/1.1', [...POST, ...SESSION, AGENT], BODY.list),
    request('DELETE /mcp HTTP/1.1', [POST[0], ...SESSION, AGENT]),
  ],
  sse: [
    request('GET /sse HTTP/1.1', [POST[0], 'Accept: text/event-stream', AGENT]),
    request('POST /messages?sessionId=S-1 HTTP/1.1', [...POST, AGENT], BODY.initialize),
    request('POST /messages?sessionId=S-1 HTTP/1.1', [...POST, SESSION[1], AGENT], BODY.initialized),
    request('POST /messages?sessionId=S-1 HTTP/1.1', [...POST, SESSION[1], AGENT], BODY.list),
  ],
};

suite('[C5] byte for byte', () => {
  for (const transport of Object.keys(TARGETS)) {
    const wanted = WITHOUT[transport].map(text => text.replaceAll('VERSION', '0.1.0'));

    test(`${transport}: off, with and without cookies in the answers`, async t => {
      assert.deepEqual(await bytesOf(t, transport, { cookie: false, jar: false }), wanted);
      assert.deepEqual(await bytesOf(t, transport, { cookie: true, jar: false }), wanted);
    });

    test(`${transport}: on, with nothing in the jar`, async t => {
      assert.deepEqual(await bytesOf(t, transport, { cookie: false, jar: true }), wanted);
    });

    test(`${transport}: on, the cookie line is all that is added, after the first answer`, async t => {
      const [first, ...rest] = await bytesOf(t, transport, { cookie: true, jar: true });
      assert.equal(first, wanted[0]);
      const line = `Cookie: ${AFFINITY}=pod-1\r\n`;
      for (const text of rest) assert.equal(text.split(line).length, 2, text);
      assert.deepEqual(rest.map(text => text.replace(line, '')), wanted.slice(1));
    });
  }
});

// --- order ---

test('[C4] stamping, jar, network log, socket: the log tells the whole order', async t => {
  const log = path.join(folder(t), 'net.log');
  const wire = [];
  const peer = await rawPeer(t, async (connection, message) => {
    const { id, method } = JSON.parse(message.body);
    wire.push({ method, fields: message.fields.map(([name]) => name),
      // What the log said when the bytes arrived: it is written before the socket is.
      logged: readFileSync(log, 'utf8').includes(`Mcp-Method: ${method}\n`) });
    const result = method === 'server/discover'
      ? { supportedVersions: ['2026-07-28'], capabilities: {}, resultType: 'complete' }
      : { content: [{ type: 'text', text: 'done' }], resultType: 'complete' };
    await connection.send(rawAnswer(200,
      { 'Content-Type': 'application/json', 'Set-Cookie': `${AFFINITY}=s3cret` },
      JSON.stringify({ jsonrpc: '2.0', id, result })));
  });
  const result = await inspect(['--cookie-jar', '--log-file', log, '--header', 'X-Mine: own-s3cret',
    '--bearer', 'tok-s3cret', peer.url, 'call', 'größe']);
  assert.equal(result.code, 0, result.stderr);
  const text = readFileSync(log, 'utf8');
  const stamped = ['host', 'content-type', 'accept', 'mcp-protocol-version', 'mcp-method'];
  const own = ['user-agent', 'x-mine', 'authorization'];
  assert.deepEqual(wire[0].fields, [...stamped, ...own, 'content-length']);
  assert.deepEqual(wire[1].fields, [...stamped, 'mcp-name', ...own, 'cookie', 'content-length']);
  assert.deepEqual(wire.map(row => row.logged), [true, true]);
  wire.forEach(({ fields }, i) => {
    const lines = [...text.matchAll(new RegExp(`^\\S+ ${i + 1} > ([A-Za-z-]+): `, 'gm'))];
    assert.deepEqual(lines.map(line => line[1].toLowerCase()), fields.filter(f => f !== 'content-length'));
  });
  // SEC-05: equal secrets are seen to be equal, and are not seen.
  assert.doesNotMatch(text, /s3cret/);
  const hashes = [...text.matchAll(new RegExp(`${AFFINITY}=(#[0-9a-f]{8})`, 'g'))].map(m => m[1]);
  assert.equal(hashes.length, 3);
  assert.equal(new Set(hashes).size, 1);
  assert.match(text, /^\S+ 1 \. the cookie lb_affinity was kept$/m);
});

test('--log-bodies: the bodies too, on one line each', async t => {
  const log = path.join(folder(t), 'net.log');
  const peer = await recorder(t, false);
  const args = ['--era', 'legacy', '--log-file', log, peer.url, 'request', 'tools/list', '{"a":\n"b"}'];
  assert.equal((await inspect(args)).code, 0);
  assert.doesNotMatch(readFileSync(log, 'utf8'), /"a":/);
  assert.equal((await inspect(['--log-bodies', ...args])).code, 0);
  const text = readFileSync(log, 'utf8');
  assert.match(text, /^\S+ \d+ > \(body\) \d+ bytes: request "tools\/list", id 2 \| .*"a": "b"\}\}$/m);
  assert.match(text, /^\S+ \d+ < \(body\) \d+ bytes: result, id 2 \| \{.*"tools":\[\]\}\}$/m);
});

test('SEC-05 no secret is in what inspect prints or logs', async t => {
  const log = path.join(folder(t), 'net.log');
  const peer = await recorder(t, true);
  const url = peer.url.replace('/mcp', '/sse?sessionId=q-s3cret');
  const result = await inspect(['-i', '--transport', 'sse', '--cookie-jar', '--log-file', log,
    '--bearer', 'tok-s3cret', '--header', 'X-Api-Key: key-s3cret', '--header', 'Cookie: mine=c-s3cret', url],
  { input: 'request tools/list {"secret":"body-s3cret"}\n' });
  assert.equal(result.code, 0, result.stderr);
  for (const text of [result.stdout, result.stderr, readFileSync(log, 'utf8')]) {
    assert.doesNotMatch(text, /s3cret|S-1/);
  }
});
