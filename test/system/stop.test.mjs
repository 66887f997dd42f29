// A graceful stop under load (requirements [G13], cases LIF-05, STR-13): clients that keep their
// connections and know nothing of it lose no request. Each is answered, or refused before it is sent.
import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { gateway } from './lib/gateway.mjs';
import { sleep } from './lib/proc.mjs';
import { rawAnswer, rawClient, rawPeer, requestText } from './lib/raw.mjs';
import { urls } from './lib/replicas.mjs';
import { assertRpcError, initialize, modern, post, request, Session } from './lib/rpc.mjs';
import { tinies } from './lib/tiny.mjs';

const TYPE = { 'Content-Type': 'application/json' };

// One client: request after request on a connection that it keeps, with pauses of up to `pauseMs`,
// until nobody listens any more. What was sent and got no answer is in `lost`.
async function hammer(limpet, session, pauseMs, seen) {
  const text = requestText('POST', '/mcp', { ...TYPE, 'Mcp-Session-Id': session.id },
    request(1, 'tools/call', { name: 'whoami', arguments: {} }));
  for (let connection; ;) {
    if (!connection || connection.end) {
      connection = await rawClient(limpet.port).catch(() => undefined);
      if (!connection) return;
      seen.connections++;
    }
    const sent = connection.send(text);
    const answer = await connection.take(5000).catch(error => error);
    await sent;
    if (answer instanceof Error) {
      seen.lost.push(answer.message);
      connection.destroy();
      connection = undefined;
      continue;
    }
    seen.statuses[answer.status] = (seen.statuses[answer.status] ?? 0) + 1;
    if (/close/i.test(answer.header('connection') ?? '')) {
      seen.told++;
      connection.destroy();
      connection = undefined;
    }
    await sleep(Math.random() * pauseMs);
  }
}

suite('SIGTERM while clients go on', () => {
  for (const [threads, pauseMs] of [['1', 0], ['1', 40], ['4', 5], ['4', 300]]) {
    test(`${threads} threads, pauses up to ${pauseMs} ms: no request is lost`, async t => {
      const replicas = urls(await tinies(t, 2));
      for (let round = 0; round < 3; round++) {
        const limpet = await gateway(t, { replicas, flags: ['--threads', threads] });
        const sessions = [await Session.open(limpet.url), await Session.open(limpet.url)];
        const seen = { lost: [], statuses: {}, told: 0, connections: 0 };
        const clients = Array.from({ length: 16 },
          (_, i) => hammer(limpet, sessions[i % 2], pauseMs, seen));
        await sleep(300);
        const began = performance.now();
        const { code } = await limpet.stop('SIGTERM', 8000);
        assert.equal(code, 0);
        assert.ok(performance.now() - began < 3000, 'it does not wait for ever');
        await Promise.all(clients);
        assert.deepEqual(seen.lost, [], JSON.stringify(seen));
        assert.deepEqual(Object.keys(seen.statuses), ['200'], JSON.stringify(seen));
        assert.ok(seen.told >= 16, 'every client was told that its connection ends');
      }
    });
  }
});

suite('what a stopping gateway still does', () => {
  const ask = (connection, method, headers, body) =>
    connection.send(requestText(method, '/mcp', { ...(body && TYPE), ...headers }, body))
      .then(() => connection.take(3000));
  const closes = answer => /close/i.test(answer.header('connection') ?? '');

  // A gateway with a session, and `count` clients whose connections are kept and idle.
  async function withIdle(t, count) {
    const limpet = await gateway(t, { replicas: urls(await tinies(t, 1)) });
    const session = await Session.open(limpet.url);
    const idle = await Promise.all(Array.from({ length: count }, () => rawClient(limpet.port)));
    for (const connection of idle) {
      const answer = await ask(connection, 'POST', { 'Mcp-Session-Id': session.id }, request(1, 'ping'));
      assert.deepEqual([answer.status, closes(answer)], [200, false]);
    }
    t.after(() => idle.forEach(connection => connection.destroy()));
    return { limpet, session, idle };
  }

  test('a request on a kept connection is served, one that lasts is refused; both say close', async t => {
    const { limpet, session, idle } = await withIdle(t, 5);
    const stopped = limpet.stop('SIGTERM', 8000);
    await sleep(200);
    const own = { 'Mcp-Session-Id': session.id };
    const call = await ask(idle[0], 'POST', own, request(2, 'tools/list'));
    const ended = await ask(idle[1], 'DELETE', own);
    const opened = await ask(idle[2], 'POST', {}, initialize(3));
    const stream = await ask(idle[3], 'GET', { ...own, Accept: 'text/event-stream' });
    assert.deepEqual([call, ended, opened, stream].map(a => [a.status, closes(a)]),
      [[200, true], [200, true], [503, true], [503, true]]);
    assertRpcError(opened, { status: 503, code: -32603, id: 3 });
    assert.deepEqual([opened, stream].map(a => a.header('retry-after')), ['1', '1']);
    for (const connection of idle.slice(0, 4)) assert.equal(await connection.ended(1000), 'end');
    const began = performance.now();
    assert.equal(await idle[4].ended(3000), 'end', 'the one that was silent is closed, not reset');
    assert.ok(performance.now() - began < 1500);
    assert.equal((await stopped).code, 0);
  });

  test('a GET stream ends at once, and its connection can still carry the next request', async t => {
    const peer = await rawPeer(t, (connection, seen) => connection.send(seen.method === 'GET'
      ? 'HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n'
      : rawAnswer(200, { ...TYPE, 'Mcp-Session-Id': 'u1' }, '{"jsonrpc":"2.0","id":1,"result":{}}')));
    const limpet = await gateway(t, { replicas: [peer.url] });
    const id = (await post(limpet.url, initialize(1))).headers['mcp-session-id'];
    const connection = await rawClient(limpet.port,
      requestText('GET', '/mcp', { Accept: 'text/event-stream', 'Mcp-Session-Id': id }));
    await connection.until(text => text.includes(': limpet'));
    const stopped = limpet.stop('SIGTERM', 8000);
    const began = performance.now();
    const stream = await connection.take(1000);
    assert.deepEqual([stream.status, closes(stream)], [200, false]);
    assert.ok(performance.now() - began < 500, 'the stream ends at once');
    const next = await ask(connection, 'POST', { 'Mcp-Session-Id': id }, request(2, 'ping'));
    assert.deepEqual([next.status, closes(next)], [200, true]);
    assert.equal((await stopped).code, 0);
    assert.ok(performance.now() - began < 900, 'nobody is waited for who has parted');
  });

  test('a modern listen ends at once, a new one is refused', async t => {
    const peer = await rawPeer(t, connection => connection.send('HTTP/1.1 200 OK\r\n' +
      'Content-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n'));
    const limpet = await gateway(t, { replicas: [peer.url] });
    const listen = modern('L1', 'subscriptions/listen', { notifications: {} });
    const text = requestText('POST', '/mcp', listen.headers, listen.body);
    const [one, two] = [await rawClient(limpet.port, text), await rawClient(limpet.port)];
    await one.until(got => got.includes(': limpet'));
    const stopped = limpet.stop('SIGTERM', 8000);
    assert.equal((await one.take(500)).status, 200);
    await two.send(text);
    assertRpcError(await two.take(500), { status: 503, id: 'L1' });
    one.destroy();
    assert.equal((await stopped).code, 0);
  });

  test('LIF-05 with nothing open it ends at once', async t => {
    const { limpet, idle } = await withIdle(t, 3);
    idle.forEach(connection => connection.destroy());
    await sleep(50);
    const began = performance.now();
    assert.equal((await limpet.stop('SIGTERM')).code, 0);
    assert.ok(performance.now() - began < 500, `${performance.now() - began} ms`);
  });
});
