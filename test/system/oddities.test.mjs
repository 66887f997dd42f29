// What clients and replicas do besides the usual, over real sockets: interim answers, early answers,
// several sessions on one connection, one session on many, connections that close at any time.
import assert from 'node:assert/strict';
import net from 'node:net';
import { suite, test } from 'node:test';
import { gateway } from './lib/gateway.mjs';
import { openEvents, send } from './lib/http.mjs';
import { sleep } from './lib/proc.mjs';
import { chunk, parseMessage, rawAnswer, rawClient, rawExchange, rawPeer, requestText } from
  './lib/raw.mjs';
import { assertLost, assertRpcError, initialize, modern, post, request, SESSION,
  toolCall } from
  './lib/rpc.mjs';

const TYPE = { 'Content-Type': 'application/json' };
const RESULT = '{"jsonrpc":"2.0","id":1,"result":{}}';
const STREAM = 'HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n' +
  'Transfer-Encoding: chunked\r\n\r\n';
const LAST = '0\r\n\r\n';
const ok = () => rawAnswer(200, TYPE, RESULT);
const big = bytes => request(1, 'tools/call', { name: 'x', arguments: { a: 'y'.repeat(bytes) } });
const call = (id, body = toolCall(1, 'x'), headers = {}) =>
  requestText('POST', '/mcp', { ...TYPE, ...(id && { 'Mcp-Session-Id': id }), ...headers }, body);

// A gateway over one raw replica that opens sessions u1, u2, ... and answers the rest by `script`.
async function over(t, script, options) {
  let opened = 0;
  const peer = await rawPeer(t, (connection, seen) => seen.body.includes('"initialize"')
    ? connection.send(rawAnswer(200, { ...TYPE, 'Mcp-Session-Id': `u${++opened}` }, RESULT))
    : script(connection, seen));
  const limpet = await gateway(t, { replicas: [peer.url], ...options });
  const open = async () => (await post(limpet.url, initialize(1))).headers[SESSION];
  return { peer, limpet, open, id: await open() };
}

suite('answers', () => {
  test('any number of interim answers is swallowed; one that is none is refused', async t => {
    const FIRST = { 200: 'HTTP/1.1 102 Processing\r\n\r\n'.repeat(200),
      502: 'HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n' };
    for (const [status, first] of Object.entries(FIRST)) {
      const { limpet, id } = await over(t, connection => connection.send(first + ok()));
      const answer = await rawExchange(limpet.port, call(id));
      assert.deepEqual([String(answer.status), answer.interim], [status, []]);
    }
  });

  test('trailers stay here, and so does what any Connection field names', async t => {
    const { limpet, id } = await over(t, connection => connection.send('HTTP/1.1 200 OK\r\n' +
      'Content-Type: application/json\r\nConnection: keep-alive\r\nConnection: X-Hop, x-two\r\n' +
      'X-Hop: 1\r\nX-Two: 2\r\nX-End: 3\r\nTrailer: X-T\r\nTransfer-Encoding: chunked\r\n\r\n' +
      `${chunk(RESULT)}0\r\nX-T: 1\r\n\r\n`));
    const answer = await rawExchange(limpet.port, call(id));
    assert.equal(answer.body, RESULT);
    assert.deepEqual(['x-hop', 'x-two', 'x-end', 'trailer', 'x-t'].map(n => answer.header(n)),
      [undefined, undefined, '3', undefined, undefined]);
    assert.ok(!answer.connection.text.includes('X-T'));
  });

  test('an answer passes with all of its fields, or is refused when they are too many', async t => {
    for (const [count, status] of [[113, 200], [114, 502]]) {
      const fields = Array.from({ length: count }, (_, i) => `X-${i}: ${i}\r\n`).join('');
      const peer = await rawPeer(t, connection => connection.send('HTTP/1.1 200 OK\r\n' + fields +
        'Content-Type: application/json\r\nContent-Length: 2\r\nX-End: 1\r\n\r\n{}'));
      const limpet = await gateway(t, { replicas: [peer.url] });
      const answer = await post(limpet.url, initialize(1));
      assert.equal(answer.status, status);
      if (status === 200)
        assert.deepEqual([answer.headers['x-0'], answer.headers['x-112'], answer.headers['x-end']],
          ['0', '112', '1']);
      else
        assert.match(assertRpcError(answer, { status, code: -32603, id: 1 }).message, /too many fields/);
    }
  });

  test('a compressed event stream passes untouched: no comment falls into it', async t => {
    const bytes = '\x1f\x8b\x08\x00any bytes';
    const { limpet, id } = await over(t, async connection => {
      await connection.send('HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n' +
        `Content-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n\r\n${chunk(bytes)}`);
      await sleep(300);
      await connection.send(LAST);
    }, { server: { comment_every: '100ms' } });
    const answer = await rawExchange(limpet.port, call(id));
    assert.deepEqual([answer.header('content-encoding'), answer.body], ['gzip', bytes]);
  });

  test('a session id that cannot be used is a 502, and is ended at the replica if it names one', async t => {
    for (const id of ['', 'two words', 'x'.repeat(513)]) {
      const peer = await rawPeer(t, (connection, seen) => connection.send(seen.method === 'DELETE'
        ? rawAnswer(204, {}) : rawAnswer(200, { ...TYPE, 'Mcp-Session-Id': id }, RESULT)));
      const limpet = await gateway(t, { replicas: [peer.url] });
      assertRpcError(await post(limpet.url, initialize(1)), { status: 502, code: -32603, id: 1 });
      await sleep(100);
      const deletes = peer.requests.filter(r => r.method === 'DELETE');
      assert.deepEqual(deletes.map(r => r.header(SESSION)), id ? [id] : []);
    }
  });

  test('... but an old-SSE stream that cannot be read is refused', async t => {
    const peer = await rawPeer(t, connection => connection.send('HTTP/1.1 200 OK\r\n' +
      'Content-Type: text/event-stream\r\nContent-Encoding: br\r\nContent-Length: 3\r\n\r\nabc'));
    const limpet = await gateway(t, { replicas: [peer.url], server: { sse_path: '/sse' } });
    const answer = await send(limpet.at('/sse'), { headers: { accept: 'text/event-stream' } });
    assert.match(assertRpcError(answer, { status: 502, code: -32603 }).message, /compressed/);
  });

  // A replica that answers as soon as it has seen the head of a large request, and hangs up.
  async function hasty(t) {
    const sockets = new Set();
    const server = net.createServer(socket => {
      sockets.add(socket);
      let text = '';
      socket.on('error', () => {});
      socket.on('data', piece => {
        text += piece.toString('latin1');
        if (!text.includes('\r\n\r\n')) return;
        if (/content-length: \d{6,}/i.test(text)) {
          socket.removeAllListeners('data');
          socket.end(rawAnswer(413, { ...TYPE, Connection: 'close' }, '{"mine":1}'));
        } else if (parseMessage(text)) {
          socket.write(rawAnswer(200, { ...TYPE, 'Mcp-Session-Id': 'u1' }, RESULT));
          text = '';
        }
      });
    });
    await new Promise(resolve => server.listen(0, '127.0.0.1', resolve));
    t.after(() => {
      sockets.forEach(socket => socket.destroy());
      server.close();
    });
    return `http://127.0.0.1:${server.address().port}/mcp`;
  }

  test('a replica that answers before the request is through: its answer arrives', async t => {
    const limpet = await gateway(t, { replicas: [await hasty(t)] });
    const id = (await post(limpet.url, initialize(1))).headers[SESSION];
    for (let i = 0; i < 5; i++) {
      const raw = await rawExchange(limpet.port, call(id, big(2_000_000)));
      assert.deepEqual([raw.status, raw.body], [413, '{"mine":1}']);
      const answer = await post(limpet.url, big(2_000_000), { [SESSION]: id });
      assert.deepEqual([answer.status, answer.text], [413, '{"mine":1}']);
    }
    assert.equal((await post(limpet.url, toolCall(1, 'x'), { [SESSION]: id })).status, 200);
  });
});

suite('requests', () => {
  test('10 MiB with a ticket streams through, with or without a length', async t => {
    const { limpet, id, peer } = await over(t, connection => connection.send(ok()),
      { server: { body_limit: '16MiB' } });
    const body = big(10 << 20);
    const pieces = body.match(/[^]{1,100000}/g).map(chunk).join('') + LAST;
    const chunked = requestText('POST', '/mcp',
      { ...TYPE, 'Mcp-Session-Id': id, 'Transfer-Encoding': 'chunked' }) + pieces;
    for (const text of [call(id, body), chunked]) {
      assert.equal((await rawExchange(limpet.port, text, 30_000)).status, 200);
      assert.ok(peer.requests.at(-1).body === body, 'byte for byte');
    }
    const before = peer.requests.length;
    assertLost(await rawExchange(limpet.port, call('lp1_none', body), 30_000), 1);
    assertRpcError(await rawExchange(limpet.port, call(undefined, body), 30_000),
      { status: 400, id: 1 });
    assert.equal(peer.requests.length, before);
  });

  test('chunk extensions and trailers are read over', async t => {
    const { limpet, id, peer } = await over(t, connection => connection.send(ok()));
    const body = toolCall(1, 'x');
    const size = body.length.toString(16).toUpperCase();
    const answer = await rawExchange(limpet.port, requestText('POST', '/mcp', { ...TYPE,
      'Mcp-Session-Id': id, 'Transfer-Encoding': 'chunked', Trailer: 'Mcp-Session-Id' }) +
      `000${size};a="b;c";d=e;f\r\n${body}\r\n0;last\r\nMcp-Session-Id: other\r\n\r\n`);
    assert.equal(answer.status, 200);
    assert.equal(peer.requests.at(-1).body, body);
    assert.deepEqual(peer.requests.at(-1).all(SESSION), ['u1']);
  });

  test('an id of any size is refused with a whole answer, and said back up to 60,000 bytes', async t => {
    const { limpet, id } = await over(t, connection => connection.send(ok()));
    const ping = size => JSON.stringify({ jsonrpc: '2.0', id: 'i'.repeat(size), method: 'ping' });
    for (const [size, expected] of [[59_998, 'i'.repeat(59_998)], [59_999, null], [66_000, null],
      [1_000_000, null]]) {
      const answer = await rawExchange(limpet.port, call('lp1_none', ping(size)));
      assertLost(answer, expected);
      const own = await rawExchange(limpet.port, call(id, ping(size)));
      if (size < 60_000) assert.equal(own.status, 200);
      else if (own.status !== 200) assertRpcError(own, { status: 400, id: null });
    }
  });

  test('what a version is that is not known is said back, unless it is a book', async t => {
    const { limpet } = await over(t, connection => connection.send(ok()));
    for (const version of ['2031-01-01', `2031-01-01${'1'.repeat(60_000)}`]) {
      const asked = modern('x'.repeat(50_000), 'tools/list', {}, {
        headers: { 'mcp-protocol-version': version.slice(0, 1000) },
        meta: { 'io.modelcontextprotocol/protocolVersion': version } });
      const answer = await rawExchange(limpet.port,
        requestText('POST', '/mcp', asked.headers, asked.body));
      assertRpcError(answer, { status: 400, id: 'x'.repeat(50_000) });
    }
  });

  test('pipelined requests of several sessions: each at its own, in order', async t => {
    const { limpet, open } = await over(t, (connection, seen) =>
      connection.send(rawAnswer(200, TYPE, JSON.stringify(seen.header(SESSION)))));
    const ids = await Promise.all(Array.from({ length: 5 }, open));
    const text = [...ids, 'none', ...ids].map(id => call(id)).join('');
    const connection = await rawClient(limpet.port, text + call(ids[0], undefined,
      { Connection: 'close' }) + call(ids[0]));
    const own = [];
    for (let i = 0; i < 12; i++) {
      const answer = await connection.take(3000);
      own.push(answer.status === 200 ? JSON.parse(answer.body) : answer.status);
    }
    assert.deepEqual(own.slice(0, 5), own.slice(6, 11));
    assert.equal(new Set(own.slice(0, 5)).size, 5);
    assert.deepEqual([own[5], own[11]], [404, own[0]]);
    assert.equal(await connection.ended(1000), 'end', 'nothing is answered behind "close"');
    assert.equal(connection.text, '');
  });

  test('HTTP/1.0 that wants to stay is told by the end that it may not', async t => {
    const { limpet, id } = await over(t, connection => connection.send(ok()));
    const body = toolCall(1, 'x');
    const connection = await rawClient(limpet.port, 'POST /mcp HTTP/1.0\r\nConnection: keep-alive\r\n' +
      `Content-Type: application/json\r\nMcp-Session-Id: ${id}\r\nContent-Length: ${body.length}\r\n` +
      `\r\n${body}`);
    assert.equal(await connection.ended(1000), 'end');
    assert.equal(parseMessage(connection.text).body, RESULT);
  });

  test('a target that names its host is judged by that, not by the Host field', async t => {
    const { limpet, id, peer } = await over(t, connection => connection.send(ok()));
    const ask = (target, host) => rawExchange(limpet.port,
      requestText('POST', target, { ...TYPE, Host: host, 'Mcp-Session-Id': id }, toolCall(1, 'x')));
    assert.equal((await ask('http://evil.example/mcp', 'localhost')).status, 403);
    assert.equal((await ask('http://LOCALHOST:1/mcp?a=/b', 'evil.example')).status, 200);
    assert.equal(peer.requests.at(-1).header('x-forwarded-host'), 'LOCALHOST:1');
    assert.equal(peer.requests.at(-1).target, '/mcp?a=/b');
  });

  test('HEAD, OPTIONS, TRACE, a GET with a body', async t => {
    const { limpet, id, peer } = await over(t, (connection, seen) => connection.send(
      seen.method === 'GET' ? rawAnswer(405, { Allow: 'POST' }) : rawAnswer(204, { Allow: 'POST' })));
    const own = { 'Mcp-Session-Id': id };
    const connection = await rawClient(limpet.port, requestText('HEAD', '/mcp', own));
    const head = await connection.until(text => parseMessage(text, { hasBody: false }));
    assert.deepEqual([head.status, head.header('allow')], [405, 'GET, POST, DELETE']);
    await connection.send(call(id));
    await connection.until(text => text.slice(head.length).includes('HTTP/1.1 204'));
    assert.equal(connection.text.indexOf('HTTP/1.1 204'), head.length, 'no body behind HEAD\'s head');
    connection.destroy();
    assert.equal((await rawExchange(limpet.port, requestText('TRACE', '/mcp', own))).status, 405);
    const options = await rawExchange(limpet.port, requestText('OPTIONS', '/mcp', own));
    assert.deepEqual([options.status, options.header('allow')], [204, 'POST']);
    assert.deepEqual(peer.requests.at(-1).all(SESSION), [], 'no ticket leaves');
    const get = await rawExchange(limpet.port, requestText('GET', '/mcp', own, 'hello'));
    assert.equal(get.status, 405);
    assert.equal(peer.requests.at(-1).body, 'hello');
  });
});

suite('connections', () => {
  test('a session used from 50 connections at once', async t => {
    const { limpet, id } = await over(t, async (connection, seen) => {
      await sleep(Math.random() * 10);
      await connection.send(rawAnswer(200, TYPE, JSON.stringify(JSON.parse(seen.body).id)));
    }, { flags: ['--threads', '2'] });
    await Promise.all(Array.from({ length: 50 }, async (_, i) => {
      const connection = await rawClient(limpet.port);
      for (let k = 0; k < 20; k++) {
        await connection.send(call(id, toolCall(100 * i + k, 'x')));
        const answer = await connection.take(5000);
        assert.deepEqual([answer.status, answer.body], [200, String(100 * i + k)]);
      }
      connection.destroy();
    }));
  });

  test('a replica that closes kept connections at random costs no call', async t => {
    let count = 0;
    const { limpet, id } = await over(t, async connection => {
      await connection.send(ok());
      count++;
      if (count % 7 === 0) connection.reset();
      else if (count % 3 === 0) connection.close();
    });
    for (let i = 0; i < 200; i++) {
      const answer = await post(limpet.url, toolCall(i, 'x'), { [SESSION]: id });
      assert.deepEqual([answer.status, answer.text], [200, RESULT]);
    }
    assert.equal(count, 200, 'and none runs twice');
  });

  test('DELETE during a call and two GET streams: all end as the replica ends them', async t => {
    const streams = [];
    const { limpet, id } = await over(t, async (connection, seen) => {
      if (seen.method === 'GET') {
        streams.push(connection);
        return connection.send(STREAM + chunk('data: {}\n\n'));
      }
      if (seen.method === 'DELETE') {
        for (const stream of streams) await stream.send(LAST);
        return connection.send(rawAnswer(204, {}));
      }
      await connection.send(STREAM + chunk('data: {"half":1}\n\n'));
      await sleep(400);
      return connection.send(chunk(`data: ${RESULT}\n\n`) + LAST);
    });
    const own = { [SESSION]: id };
    const running = post(limpet.url, toolCall(1, 'x'), own);
    const open = () => openEvents(limpet.url, { headers: { accept: 'text/event-stream', ...own } });
    const gets = [await open(), await open()];
    for (const get of gets) await get.events.until(r => r.events[0]);
    assert.equal((await send(limpet.url, { method: 'DELETE', headers: own })).status, 204);
    for (const get of gets) assert.equal(await get.events.ended(1000), 'end');
    assert.ok((await running).text.endsWith(`data: ${RESULT}\n\n`), 'the call is not cut');
  });
});
