// HTTP as clients and replicas really speak it: header fields, bodies, odd but legal forms, and what
// must be refused. Raw bytes where a library would tidy up. Case codes: HDR, BOD.
import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { gateway } from './lib/gateway.mjs';
import { open, send } from './lib/http.mjs';
import { freePorts } from './lib/ports.mjs';
import { chunk, parseMessage, rawAnswer, rawClient, rawExchange, rawPeer, requestText } from
  './lib/raw.mjs';
import { urls } from './lib/replicas.mjs';
import { assertLost, assertRpcError, initialize, modern, post, request, Session, SESSION } from
  './lib/rpc.mjs';
import { tinies, tiny } from './lib/tiny.mjs';

const JSON_TYPE = { 'Content-Type': 'application/json' };
const RESULT = '{"jsonrpc":"2.0","id":1,"result":{}}';
const ping = request(1, 'ping');

// A gateway over one raw replica that mints the id u1 and answers the rest by `answer(request)`.
async function overRaw(t, answer, options) {
  const peer = await rawPeer(t, (connection, seen) => connection.send(
    seen.body.includes('"initialize"')
      ? rawAnswer(200, { ...JSON_TYPE, 'Mcp-Session-Id': 'u1' }, RESULT)
      : answer(seen)));
  const limpet = await gateway(t, { replicas: [peer.url], ...options });
  const opened = await post(limpet.url, initialize(1));
  return { peer, limpet, id: opened.headers[SESSION] };
}

const ok = () => rawAnswer(200, JSON_TYPE, RESULT);
const exchange = (limpet, headers, body = ping, path = '/mcp') => rawExchange(limpet.port,
  requestText('POST', path, { ...JSON_TYPE, ...headers }, body));

suite('header fields', () => {
  test('HDR-01 every end-to-end field of the answer reaches the client, each as often', async t => {
    const long = 'x'.repeat(7000);
    const peer = await rawPeer(t, connection => connection.send(rawAnswer(200, { ...JSON_TYPE,
      'Mcp-Session-Id': 'u1', 'MCP-Protocol-Version': '2025-11-25', 'Retry-After': '3',
      'WWW-Authenticate': 'Bearer realm="a, b"', Link: ['<a>; rel=x', '<b>; rel=y'],
      'X-Request-Id': 'R-1', 'X-Long': long, Connection: 'keep-alive, X-Hop', 'X-Hop': 'no',
      'Keep-Alive': 'timeout=5', 'Set-Cookie': ['a=1', 'b=2'] }, RESULT)));
    const limpet = await gateway(t, { replicas: [peer.url] });
    const answer = await post(limpet.url, initialize(1));
    const all = name => answer.rawHeaders
      .filter(([n]) => n.toLowerCase() === name.toLowerCase()).map(([, v]) => v);
    assert.deepEqual(all('Link'), ['<a>; rel=x', '<b>; rel=y']);
    assert.deepEqual(all('MCP-Protocol-Version'), ['2025-11-25']);
    assert.deepEqual(all('Retry-After'), ['3']);
    assert.deepEqual(all('WWW-Authenticate'), ['Bearer realm="a, b"']);
    assert.deepEqual(all('X-Request-Id'), ['R-1']);
    assert.deepEqual(all('X-Long'), [long]);
    assert.equal(all(SESSION).length, 1);
    assert.notEqual(all(SESSION)[0], 'u1');
    assert.deepEqual(all('X-Hop'), [], 'hop-by-hop fields stay');
    assert.equal(answer.text, RESULT);
  });

  test('gateways that stand in a ring: 508 at once, and the log says why', async t => {
    const [one, two] = await freePorts(2);
    const limpet = await gateway(t, { port: one, replicas: [`http://127.0.0.1:${two}/mcp`] });
    await gateway(t, { port: two, replicas: [`http://127.0.0.1:${one}/mcp`] });
    const answer = await post(limpet.url, initialize(1));
    assertRpcError(answer, { status: 508, code: -32603, id: 1 });
    assert.match(answer.json.error.message, /came back to this gateway/);
    await limpet.record(r => r.reason === 'looped');
    await limpet.proc.says(/came back to this gateway: the address of a replica of server default/);
    const threads = Number(process.env.LIMPET_THREADS ?? 1); // each knows its own hand only
    assert.ok(limpet.accessLog.length <= 1 + threads, 'once as it came, then as it came back');
  });

  test('a query passes untouched, also with what clients leave unencoded in it', async t => {
    const { limpet, id, peer } = await overRaw(t, ok);
    const query = `?a[]=1&b={"c":"d|e"}^\`&f=%7B`;
    const answer = await exchange(limpet, { [SESSION]: id }, ping, `/mcp${query}`);
    assert.equal(answer.status, 200);
    assert.equal(peer.requests.at(-1).target, `/mcp${query}`);
    for (const target of ['/mcp[]', '/mcp?a\\b', '/mcp?%zz&lp=s3cr3t']) {
      assert.equal((await exchange(limpet, { [SESSION]: id }, ping, target)).status, 400, target);
    }
    await limpet.record(r => r.reason === 'bad_http' && r.path === '/mcp');
    assert.ok(!limpet.proc.log.includes('s3cr3t'), 'no query is logged, of refused requests neither');
  });

  test('HDR-05 names in any case, blanks around the value, the value itself to the letter', async t => {
    const { limpet, id, peer } = await overRaw(t, ok);
    const lines = [`mcp-session-id: ${id}`, `MCP-SESSION-ID: ${id}`, `Mcp-Session-ID:\t  ${id}  \t`,
      `Mcp-Session-Id:${id}`];
    for (const line of lines) {
      const answer = await rawExchange(limpet.port, `POST /mcp HTTP/1.1\r\nhost: 127.0.0.1\r\n` +
        `content-TYPE: application/json\r\n${line}\r\ncontent-LENGTH: ${ping.length}\r\n\r\n${ping}`);
      assert.equal(answer.status, 200, line);
      assert.equal(peer.requests.at(-1).header(SESSION), 'u1');
    }
    const chunked = await rawExchange(limpet.port, `POST /mcp HTTP/1.1\r\nHOST: 127.0.0.1\r\n` +
      `content-type: application/json\r\nmcp-session-id: ${id}\r\ntransfer-ENCODING: Chunked\r\n\r\n` +
      `${chunk(ping)}0\r\n\r\n`);
    assert.equal(chunked.status, 200);
    assert.equal(peer.requests.at(-1).body, ping);
    const at = [...id].findLastIndex(c => /[a-z]/.test(c));
    const wrong = id.slice(0, at) + id[at].toUpperCase() + id.slice(at + 1);
    assertLost(await exchange(limpet, { [SESSION]: wrong }), 1);
  });

  test('HDR-07 the session header twice: equal is one, different is refused', async t => {
    const { limpet, id, peer } = await overRaw(t, ok);
    assert.equal((await exchange(limpet, { 'Mcp-Session-Id': [id, id] })).status, 200);
    assert.deepEqual(peer.requests.at(-1).all(SESSION), ['u1']);
    const before = peer.requests.length;
    const two = await exchange(limpet, { 'Mcp-Session-Id': [id, 'other'] });
    assertRpcError(two, { status: 400, id: JSON.parse(two.body).id });
    const joined = await exchange(limpet, { 'Mcp-Session-Id': `${id}, ${id}` });
    assert.ok([400, 404].includes(joined.status), String(joined.status));
    assert.equal(peer.requests.length, before, 'no replica was contacted');
  });

  test('what the replica gets: its own Host, no Origin, who asked, canonical Accept', async t => {
    const { limpet, id, peer } = await overRaw(t, ok);
    await exchange(limpet, { Host: `localhost:${limpet.port}`, Origin: 'http://localhost:8080',
      'Mcp-Session-Id': id, 'MCP-Protocol-Version': '2025-06-18', Accept: '*/*', Cookie: 'a=1',
      Connection: 'close, X-Mine', 'X-Mine': '1', 'X-Kept': 'yes', TE: 'trailers',
      'Proxy-Connection': 'x', 'X-Forwarded-For': '6.6.6.6', 'X-Forwarded-Host': 'spoofed',
      Forwarded: 'for=6.6.6.6', Authorization: 'Bearer t' });
    const seen = peer.requests.at(-1);
    assert.deepEqual(seen.all('host'), [`127.0.0.1:${peer.port}`]);
    for (const gone of ['origin', 'x-mine', 'te', 'proxy-connection']) {
      assert.deepEqual(seen.all(gone), [], gone);
    }
    assert.deepEqual(seen.all('x-kept'), ['yes']);
    assert.deepEqual(seen.all('authorization'), ['Bearer t']);
    assert.deepEqual(seen.all('accept'), ['application/json, text/event-stream']);
    assert.deepEqual(seen.all('mcp-protocol-version'), ['2025-06-18']);
    assert.deepEqual(seen.all('x-forwarded-for'), ['127.0.0.1']);
    assert.deepEqual(seen.all('x-forwarded-proto'), ['http']);
    assert.deepEqual(seen.all('x-forwarded-host'), [`localhost:${limpet.port}`]);
    assert.equal(seen.all('forwarded').length, 1);
    assert.match(seen.header('forwarded'), /for="?127\.0\.0\.1/);
  });

  test('trace context passes, or is made', async t => {
    const { limpet, id, peer } = await overRaw(t, ok);
    const trace = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01';
    await exchange(limpet, { 'Mcp-Session-Id': id, traceparent: trace, tracestate: 'a=1' });
    assert.match(peer.requests.at(-1).header('traceparent'), /^00-0af7651916cd43dd8448eb211c80319c-/);
    assert.equal(peer.requests.at(-1).header('tracestate'), 'a=1');
    await exchange(limpet, { 'Mcp-Session-Id': id });
    assert.match(peer.requests.at(-1).header('traceparent'), /^00-[0-9a-f]{32}-[0-9a-f]{16}-0[01]$/);
    const later = `cc${trace.slice(2)}-more`;
    await exchange(limpet, { 'Mcp-Session-Id': id, traceparent: later });
    assert.equal(peer.requests.at(-1).header('traceparent'), later);
    for (const bad of ['x'.repeat(55), trace.toUpperCase(), `${trace}-more`, trace.replace('b7', 'g7'),
      `ff${trace.slice(2)}`, `cc${trace.slice(2)}x`, trace.slice(0, -1), trace.replaceAll('-', '_'),
      `00-${'0'.repeat(32)}-${trace.slice(36)}`, `${trace.slice(0, 36)}${'0'.repeat(16)}-01`]) {
      await exchange(limpet, { 'Mcp-Session-Id': id, traceparent: bad, tracestate: 'a=1' });
      assert.match(peer.requests.at(-1).header('traceparent'), /^00-[0-9a-f]{32}-[0-9a-f]{16}-01$/, bad);
      assert.notEqual(peer.requests.at(-1).header('traceparent'), bad);
      assert.equal(peer.requests.at(-1).header('tracestate'), undefined, bad);
    }
  });

  test('Host and Origin are judged on what the client sent', async t => {
    const { limpet, id, peer } = await overRaw(t, ok);
    const before = peer.requests.length;
    for (const headers of [{ Host: 'evil.example' }, { Host: `evil.example:${limpet.port}` },
      { Origin: 'http://evil.example' }, { Origin: 'null' },
      { Host: 'localhost', Origin: 'https://evil.example' }]) {
      const answer = await exchange(limpet, { 'Mcp-Session-Id': id, ...headers });
      assertRpcError(answer, { status: 403, id: JSON.parse(answer.body).id });
    }
    assert.equal(peer.requests.length, before);
    for (const headers of [{ Host: 'LOCALHOST' }, { Host: '[::1]:80' }, { Host: '127.0.0.1:9' },
      { Origin: 'http://localhost' }, { Origin: 'http://127.0.0.1:5173' }]) {
      assert.equal((await exchange(limpet, { 'Mcp-Session-Id': id, ...headers })).status, 200);
    }
    const listed = await gateway(t, { replicas: [peer.url],
      server: { hosts: ['mcp.example'], origins: ['https://app.example'] } });
    const named = { Host: 'mcp.example', Origin: 'https://app.example' };
    assert.equal((await exchange(listed, named, initialize(1))).status, 200);
    assert.equal((await exchange(listed, { ...named, Host: 'localhost' })).status, 403);
  });
});

suite('request bodies', () => {
  const LIMIT = 4 * 1024 * 1024;
  const sized = size => {
    const frame = request(1, 'tools/call', { name: 'x', arguments: { a: '' } });
    return frame.replace('"a":""', `"a":"${'y'.repeat(size - frame.length)}"`);
  };

  test('BOD-01 the limit exactly passes intact, one byte more is 413, the session stays', async t => {
    const replica = await tiny(t);
    const limpet = await gateway(t, { replicas: [replica.url] });
    const session = await Session.open(limpet.url);
    const body = sized(LIMIT);
    assert.equal((await session.post(body)).status, 200);
    assert.ok(replica.requests.at(-1).bytes.equals(Buffer.from(body)));
    const before = replica.requests.length;
    for (let i = 0; i < 5; i++) {
      const over = await session.post(sized(LIMIT + 1));
      assertRpcError(over, { status: 413, id: over.json.id });
      assert.ok([1, null].includes(over.json.id));
      assert.match(over.json.error.message, new RegExp(`limit of ${LIMIT} bytes \\(body_limit\\)`));
    }
    assert.equal(replica.requests.length, before);
    await session.tool('whoami');
  });

  test('BOD-01 over the limit without a length: 413 in the midst, no reset', async t => {
    const limpet = await gateway(t, { replicas: urls(await tinies(t, 1)),
      server: { body_limit: '64KiB' } });
    const session = await Session.open(limpet.url);
    const connection = await rawClient(limpet.port, requestText('POST', '/mcp', { ...JSON_TYPE,
      'Mcp-Session-Id': session.id, 'Transfer-Encoding': 'chunked' }));
    for (let i = 0; i < 20; i++) await connection.send(chunk('z'.repeat(8192)));
    const answer = await connection.take(3000);
    assert.equal(answer.status, 413);
    connection.destroy();
    await session.tool('whoami');
  });

  test('bodies of any size pass byte for byte, chunked or not, in any pieces', async t => {
    const replica = await tiny(t);
    const limpet = await gateway(t, { replicas: [replica.url] });
    const session = await Session.open(limpet.url);
    for (const size of [200, 65_535, 65_536, 65_537, 1_000_000]) {
      const body = sized(size);
      assert.equal((await session.post(body)).status, 200, `${size}`);
      assert.ok(replica.requests.at(-1).bytes.equals(Buffer.from(body)), `${size} bytes`);
      const pieces = body.match(/[^]{1,9000}/g).map(chunk).join('') + '0\r\n\r\n';
      const answer = await rawExchange(limpet.port, requestText('POST', '/mcp', { ...JSON_TYPE,
        'Mcp-Session-Id': session.id, 'Transfer-Encoding': 'chunked' }) + pieces);
      assert.equal(answer.status, 200);
      assert.ok(replica.requests.at(-1).bytes.equals(Buffer.from(body)), `${size} bytes, chunked`);
    }
  });

  test('BOD-02 Expect: 100-continue is answered at once and goes no further', async t => {
    const { limpet, id, peer } = await overRaw(t, ok);
    const body = sized(2_000_000);
    const connection = await rawClient(limpet.port);
    const began = performance.now();
    await connection.send(requestText('POST', '/mcp', { ...JSON_TYPE, 'Mcp-Session-Id': id,
      Expect: '100-continue', 'Content-Length': body.length }));
    const interim = await connection.take(1000);
    assert.equal(interim.status, 100);
    assert.ok(performance.now() - began < 150, `${performance.now() - began} ms`);
    await connection.send(body);
    assert.equal((await connection.take(5000)).status, 200);
    assert.deepEqual(peer.requests.at(-1).all('expect'), []);
    connection.destroy();
  });

  test('BOD-02 a refused request gets no 100; an unknown expectation is 417', async t => {
    const { limpet, id } = await overRaw(t, ok);
    const big = await rawExchange(limpet.port, requestText('POST', '/mcp', { ...JSON_TYPE,
      'Mcp-Session-Id': id, Expect: '100-continue', 'Content-Length': LIMIT + 1 }));
    assert.deepEqual([big.status, big.interim], [413, []]);
    const odd = await exchange(limpet, { 'Mcp-Session-Id': id, Expect: 'banana' });
    assert.deepEqual([odd.status, odd.interim], [417, []]);
  });

  test('BOD-02 interim answers of the replica are swallowed', async t => {
    for (const first of ['100 Continue', '103 Early Hints\r\nLink: <a>']) {
      const { limpet, id } = await overRaw(t, () => `HTTP/1.1 ${first}\r\n\r\n${ok()}`);
      const answer = await exchange(limpet, { 'Mcp-Session-Id': id });
      assert.deepEqual([answer.status, answer.interim], [200, []]);
    }
  });

  test('BOD-03 a byte order mark: UTF-8 is skipped and passed on, UTF-16 is no JSON', async t => {
    const replica = await tiny(t);
    const limpet = await gateway(t, { replicas: [replica.url] });
    const session = await Session.open(limpet.url);
    const marked = Buffer.from('\uFEFF' + request(3, 'tools/list'));
    assert.equal((await session.post(marked)).status, 200);
    assert.ok(replica.requests.at(-1).bytes.equals(marked));
    const before = replica.requests.length;
    for (const bytes of [Buffer.from('\uFEFF' + ping, 'utf16le'), Buffer.from(' \uFEFF' + ping),
      Buffer.from('\uFEFF\uFEFF' + ping), Buffer.concat([Buffer.of(0xff), Buffer.from(ping)])]) {
      assertRpcError(await session.post(bytes), { status: 400, code: -32700 });
    }
    assert.equal(replica.requests.length, before);
  });

  test('what is wrong with a body is said: nested too deep, a key twice', async t => {
    const { limpet, id } = await overRaw(t, ok);
    const deep = `{"jsonrpc":"2.0","id":1,"method":"ping","params":${'['.repeat(200)}${']'.repeat(200)}}`;
    const twice = '{"jsonrpc":"2.0","id":1,"method":"ping","method":"ping"}';
    const pad = ' '.repeat(70_000); // what is over 64 KiB is judged on its way
    const cases = [[deep, -32700, 'Parse error: the body is nested deeper than 128 levels'],
      [twice, -32600, 'Invalid Request: a key of the message is given twice']];
    for (const [body, code, message] of cases) {
      for (const bytes of [body, body + pad]) {
        const answer = await exchange(limpet, { [SESSION]: id }, bytes);
        const echoed = code === -32700 ? null : 1;
        assert.equal(assertRpcError(answer, { status: 400, code, id: echoed }).message, message);
      }
    }
  });
});

suite('odd but legal, and what is refused', () => {
  test('HTTP/1.0, HEAD, absolute-form, chunk extensions, trailers, pipelining', async t => {
    const { limpet, id, peer } = await overRaw(t, ok);
    const fields = `Host: 127.0.0.1\r\nContent-Type: application/json\r\nMcp-Session-Id: ${id}\r\n`;
    const sized = `Content-Length: ${ping.length}\r\n\r\n${ping}`;
    const old = await rawClient(limpet.port, `POST /mcp HTTP/1.0\r\n${fields}${sized}`);
    assert.equal(await old.ended(3000), 'end', 'HTTP/1.0 closes');
    const oldAnswer = parseMessage(old.text);
    assert.equal(oldAnswer.status, 200);
    assert.equal(oldAnswer.header('transfer-encoding'), undefined);
    const absolute = await rawExchange(limpet.port,
      `POST http://127.0.0.1:${limpet.port}/mcp HTTP/1.1\r\n${fields}${sized}`);
    assert.equal(absolute.status, 200);
    const extended = await rawExchange(limpet.port, `POST /mcp HTTP/1.1\r\n${fields}` +
      `Transfer-Encoding: chunked\r\n\r\n${ping.length.toString(16)};a=b\r\n${ping}\r\n` +
      '0\r\nX-Trailer: 1\r\n\r\n');
    assert.equal(extended.status, 200);
    assert.equal(peer.requests.at(-1).body, ping);
    const one = `POST /mcp HTTP/1.1\r\n${fields}${sized}`;
    const pipe = await rawClient(limpet.port, one + one + one);
    for (let i = 0; i < 3; i++) assert.equal((await pipe.take(3000)).status, 200);
    pipe.destroy();
    const head = await rawClient(limpet.port, `HEAD /mcp HTTP/1.1\r\n${fields}\r\n`);
    const headAnswer = await head.until(text => parseMessage(text, { hasBody: false }));
    assert.ok([200, 405].includes(headAnswer.status), String(headAnswer.status));
    head.destroy();
  });

  const POST = 'POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n';
  const BAD = {
    'a length and chunks': `${POST}Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n`,
    'two lengths': `${POST}Content-Length: 3\r\nContent-Length: 4\r\n\r\n{}  `,
    'a length that is no number': `${POST}Content-Length: +3\r\n\r\n{} `,
    'a bare line feed': 'POST /mcp HTTP/1.1\nHost: 127.0.0.1\n\n',
    'a folded line': `${POST}X-A: b\r\n c\r\nContent-Length: 2\r\n\r\n{}`,
    'a blank before the colon': `${POST}X-A : b\r\nContent-Length: 2\r\n\r\n{}`,
    'a bare carriage return': `${POST}X-A: b\rc\r\nContent-Length: 2\r\n\r\n{}`,
    'a NUL in a value': `${POST}X-A: b\0c\r\nContent-Length: 2\r\n\r\n{}`,
    'a bad name': `${POST}X(A: b\r\nContent-Length: 2\r\n\r\n{}`,
    'an unknown transfer coding': `${POST}Transfer-Encoding: gzip\r\n\r\n`,
    'chunked twice': `${POST}Transfer-Encoding: chunked, chunked\r\n\r\n0\r\n\r\n`,
    'a chunk size that is no number': `${POST}Transfer-Encoding: chunked\r\n\r\nxyz\r\n`,
    'a chunk without its line end': `${POST}Transfer-Encoding: chunked\r\n\r\n2\r\n{}0\r\n\r\n`,
    'no Host': 'GET /mcp HTTP/1.1\r\n\r\n',
    'two Hosts': 'GET /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nHost: localhost\r\n\r\n',
    'another protocol': 'GET /mcp HTTP/3.0\r\nHost: 127.0.0.1\r\n\r\n',
    'no request at all': '\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n',
  };
  for (const [what, bytes] of Object.entries(BAD)) {
    test(`${what}: 400 and close`, async t => {
      const { limpet, peer } = await overRaw(t, ok);
      const before = peer.requests.length;
      const connection = await rawClient(limpet.port, bytes);
      await connection.ended(3000);
      const answer = parseMessage(connection.text);
      assert.ok([400, 501, 505].includes(answer?.status), `got ${JSON.stringify(connection.text)}`);
      assert.ok(JSON.parse(answer.body).error.message, 'a sentence says why');
      assert.equal(peer.requests.length, before, 'nothing went on');
    });
  }

  test('a head over the limit is 431, a target that is too long 414 or 431', async t => {
    const { limpet } = await overRaw(t, ok);
    const long = await exchange(limpet, { 'X-Long': 'x'.repeat(100_000) });
    assert.equal(long.status, 431);
    const target = await rawExchange(limpet.port,
      `GET /${'x'.repeat(100_000)} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n`);
    assert.ok([414, 431].includes(target.status));
  });

  test('with as many fields as are allowed none is lost, one more is 431', async t => {
    const { limpet, peer, id } = await overRaw(t, ok);
    const statuses = new Set();
    for (let count = 105; count <= 126; count++) {
      const many = Object.fromEntries(Array.from({ length: count }, (_, i) => [`X-${i}`, 'v']));
      const answer = await exchange(limpet, { 'Mcp-Session-Id': id, ...many });
      statuses.add(answer.status);
      if (answer.status === 431) continue;
      assert.equal(peer.requests.at(-1).header(SESSION), 'u1');
      assert.equal(peer.requests.at(-1).header(`x-${count - 1}`), 'v');
    }
    assert.deepEqual([...statuses], [200, 431]);
  });

  test('an unknown path is 404, but not a lost session', async t => {
    const limpet = await gateway(t, { replicas: urls(await tinies(t, 1)) });
    for (const path of ['/', '/mcp/', '/mcpx', '/MCP', '/a/mcp', '/.well-known/x']) {
      const answer = await send(limpet.at(path), { method: 'POST', headers: JSON_TYPE, body: ping });
      assert.equal(answer.status, 404, path);
      assert.notEqual(answer.json?.error?.code, -32001);
    }
    const dots = await exchange(limpet, {}, ping, '/a/../mcp');
    assert.ok([400, 404].includes(dots.status), 'dots are refused, not followed');
  });

  test('a garbled answer is 502, an overlong session id too, and never leaks', async t => {
    const garbled = ['HTTP/1.1 banana\r\n\r\n', 'ICY 200 OK\r\n\r\n',
      'HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab',
      'HTTP/1.1 200 OK\r\nX Y: 1\r\nContent-Length: 0\r\n\r\n'];
    for (const bytes of garbled) {
      const { limpet, id } = await overRaw(t, () => bytes);
      assertRpcError(await exchange(limpet, { 'Mcp-Session-Id': id }),
        { status: 502, code: -32603, id: 1 });
    }
    const replica = await tiny(t, 'r1', { idOf: () => 'i'.repeat(513) });
    const limpet = await gateway(t, { replicas: [replica.url] });
    const answer = await post(limpet.url, initialize(1));
    assertRpcError(answer, { status: 502, code: -32603, id: 1 });
    assert.ok(!answer.text.includes('iiii'));
  });

  test('an idle connection to a replica that was closed meanwhile costs nobody a request', async t => {
    const { limpet, id, peer } = await overRaw(t, () =>
      rawAnswer(200, { ...JSON_TYPE, 'Keep-Alive': 'timeout=1' }, RESULT));
    for (let i = 0; i < 6; i++) {
      const answer = await exchange(limpet, { 'Mcp-Session-Id': id });
      assert.equal(answer.status, 200, answer.body);
      for (const connection of peer.connections) connection.close();
      await new Promise(resolve => setTimeout(resolve, 30));
    }
  });

  test('an answer whose client left early does no harm', async t => {
    const { limpet, id } = await overRaw(t, ok);
    for (let i = 0; i < 20; i++) {
      const connection = await rawClient(limpet.port,
        requestText('POST', '/mcp', { ...JSON_TYPE, 'Mcp-Session-Id': id }, ping).slice(0, -i));
      connection.reset();
    }
    assert.equal((await exchange(limpet, { 'Mcp-Session-Id': id })).status, 200);
    const options = modern(1, 'tools/list');
    assert.equal((await open(limpet.url, options)).status, 200);
  });
});
