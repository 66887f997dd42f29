// A replica dies, hangs or comes back empty: calls in flight end with an error for their id, the next
// request is told the truth fast, and new sessions go elsewhere ([G6], [G7], [G8] without recovery).
import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { gateway } from './lib/gateway.mjs';
import { freePort } from './lib/ports.mjs';
import { start } from './lib/proc.mjs';
import { chunk, rawAnswer, rawClient, rawPeer, requestText } from './lib/raw.mjs';
import { conf, urls } from './lib/replicas.mjs';
import { answerOf, assertLost, assertRpcError, initialize, post, request, Session, SESSION,
  toolCall } from './lib/rpc.mjs';
import { tinies, tiny } from './lib/tiny.mjs';

// A listener whose backlog is full: connections are neither accepted nor refused.
const FULL_BACKLOG = `
import socket, sys, time
address = ("127.0.0.1", int(sys.argv[1]))
listener = socket.socket()
listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
listener.bind(address)
listener.listen(0)
waiting = [socket.socket() for _ in range(4)]
for one in waiting:
    one.setblocking(False)
    one.connect_ex(address)
print("ready", flush=True)
time.sleep(60)
`;
const blackHole = (t, port) =>
  start(t, 'black hole', 'python3', ['-c', FULL_BACKLOG, String(port)]).says(/ready/, 15_000);

// A session on each replica, by the replica's name.
async function sessionOn(limpet, replicas) {
  const owned = {};
  while (Object.keys(owned).length < replicas.length) {
    const session = await Session.open(limpet.url);
    owned[await session.tool('whoami')] ??= session;
  }
  return owned;
}

suite('the owner is killed', () => {
  test('a call that waits for a JSON answer: 200 with -32603 for its id', async t => {
    const replicas = await conf(t, 2, { JSON: '1' });
    const limpet = await gateway(t, { replicas: urls(replicas) });
    const owned = await sessionOn(limpet, replicas);
    const waiting = owned.r1.post(toolCall('call-1', 'slow', { ms: 5000 }));
    await sleep(300);
    await replicas[0].kill();
    const answer = await waiting;
    assertRpcError(answer, { status: 200, code: -32603, id: 'call-1' });
    assert.ok(answer.ms < 1500, `${answer.ms} ms`);
    assertLost(await owned.r1.ask('ping'), 2);
    assert.equal(await owned.r2.tool('whoami'), 'r2');
  });

  test('a call whose answer is a stream, between events: an error event, then the end', async t => {
    const replicas = await conf(t, 2);
    const limpet = await gateway(t, { replicas: urls(replicas) });
    const owned = await sessionOn(limpet, replicas);
    const stream = await owned.r1.openPost(toolCall(77, 'slow', { ms: 5000 }));
    await stream.events.until(r => r.chunks.length > 0);
    await sleep(200);
    await replicas[0].kill();
    assert.equal(await stream.events.ended(1500), 'end', 'ended properly');
    const last = stream.events.messages.at(-1);
    assert.equal(last.id, 77);
    assert.equal(last.error.code, -32603);
  });

  test('the standalone GET stream ends, and its session is 404 at once', async t => {
    const replicas = await conf(t, 2);
    const limpet = await gateway(t, { replicas: urls(replicas) });
    const owned = await sessionOn(limpet, replicas);
    const stream = await owned.r1.stream();
    await replicas[0].kill();
    await stream.events.ended(1500);
    assert.deepEqual(stream.events.messages, [], 'no error event: nobody had asked');
    for (const answer of [await owned.r1.ask('ping'), await owned.r1.get(),
      await owned.r1.delete()]) {
      assert.equal(answer.status, 404, answer.text);
      assert.ok(answer.ms < 500, `${answer.ms} ms`);
    }
  });

  test('refused twice is gone at once, also when no stream told', async t => {
    const [one, two] = await tinies(t, 2);
    const limpet = await gateway(t, { replicas: urls([one, two]) });
    const owned = await sessionOn(limpet, [one, two]);
    await one.stop();
    const statuses = [];
    for (let i = 0; i < 3; i++) {
      const answer = await owned.r1.ask('ping');
      assert.ok(answer.ms < 1000, `${answer.ms} ms`);
      statuses.push(answer.status);
    }
    assert.ok(statuses.every(s => [404, 503].includes(s)), `${statuses}`);
    assert.equal(statuses.at(-1), 404, `${statuses}`);
    assert.equal(await owned.r2.tool('whoami'), 'r2');
  });

  test('new sessions avoid a dead replica, and come back to it', async t => {
    const [one, two, three] = await tinies(t, 3);
    const limpet = await gateway(t, { replicas: urls([one, two, three]) });
    await one.stop();
    for (let i = 0; i < 12; i++) {
      const session = await Session.open(limpet.url);
      assert.notEqual(await session.tool('whoami'), 'r1');
    }
    await tiny(t, 'r1', { port: one.port });
    await sleep(800);
    const owners = new Set();
    for (let i = 0; i < 12; i++) owners.add(await (await Session.open(limpet.url)).tool('whoami'));
    assert.equal(owners.size, 3, 'the replica that came back takes sessions');
  });

  test('all replicas down: 503 with Retry-After for a new session, and healed without help', async t => {
    const port = await freePort();
    const limpet = await gateway(t, { replicas: [`http://127.0.0.1:${port}/mcp`] });
    const refused = await post(limpet.url, initialize(9));
    assertRpcError(refused, { status: 503, code: -32603, id: 9 });
    assert.equal(refused.headers['retry-after'], '1');
    await tiny(t, 'late', { port });
    await sleep(1200);
    const session = await Session.open(limpet.url);
    assert.equal(await session.tool('whoami'), 'late');
  });

  test('restarted empty on its address: 404, whatever its dialect, new sessions work', async t => {
    for (const LOST of ['404', '400']) {
      const [replica] = await conf(t, 1, { LOST });
      const limpet = await gateway(t, { replicas: [replica.url] });
      const session = await Session.open(limpet.url);
      await replica.kill();
      await replica.start();
      await sleep(600);
      assertLost(await session.ask('ping'), 1);
      const again = await Session.open(limpet.url);
      assert.equal(await again.tool('count'), 'r1 1');
    }
  });
});

// Raw replicas that die in ways that no real server lets us choose.
suite('the owner breaks off', () => {
  const HEAD = 'HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n';
  const NOTE = 'data: {"jsonrpc":"2.0","method":"notifications/message","params":{}}\n\n';

  async function dying(t, die) {
    const peer = await rawPeer(t, (connection, { body }) => {
      if (!body.includes('"initialize"')) return die(connection);
      return connection.send(rawAnswer(200,
        { 'Content-Type': 'application/json', 'Mcp-Session-Id': 'u1' },
        '{"jsonrpc":"2.0","id":0,"result":{}}'));
    });
    const limpet = await gateway(t, { replicas: [peer.url] });
    const id = (await post(limpet.url, initialize(0))).headers[SESSION];
    return { peer, limpet, id };
  }

  test('inside an event: the body is broken off, no error event is put into it', async t => {
    const { limpet, id } = await dying(t, async connection => {
      await connection.send(HEAD + chunk(`${NOTE}data: {"half":`));
      await sleep(150);
      connection.reset();
    });
    const client = await rawClient(limpet.port, requestText('POST', '/mcp', {
      'Content-Type': 'application/json', 'Mcp-Session-Id': id }, toolCall(5, 'x')));
    await client.ended(3000);
    assert.ok(!client.text.endsWith('0\r\n\r\n'), 'not ended as if whole');
    assert.ok(!client.text.includes('-32603'), client.text);
  });

  test('a stream that the replica ends without an answer passes as it is', async t => {
    const { limpet, id } = await dying(t, c =>
      c.send(`${HEAD}${chunk('id: 1\nretry: 500\ndata:\n\n')}0\r\n\r\n`));
    const answer = await post(limpet.url, toolCall(5, 'x'), { [SESSION]: id });
    assert.equal(answer.status, 200);
    assert.ok(!answer.text.includes('-32603'), 'a polled stream is not an error');
    assert.ok(answer.text.includes('retry: 500'));
  });

  test('before any byte of a call\'s answer: 200 with -32603, and it was sent once', async t => {
    const { limpet, id, peer } = await dying(t, c => c.reset());
    const before = peer.requests.length;
    const answer = await post(limpet.url, toolCall(6, 'x'), { [SESSION]: id });
    assertRpcError(answer, { status: 200, code: -32603, id: 6 });
    await sleep(200);
    const calls = peer.requests.slice(before).filter(r => r.body.includes('tools/call'));
    assert.equal(calls.length, 1, 'a call that may have run is never sent twice');
  });

  test('a batch of 2025-03-26 in flight: each of its requests gets its error', async t => {
    const { limpet, id } = await dying(t, c => c.reset());
    const batch = `[${toolCall('a', 'x')},${toolCall(2, 'y')}]`;
    const answer = await post(limpet.url, batch,
      { [SESSION]: id, 'mcp-protocol-version': '2025-03-26' });
    assert.ok([200, 502].includes(answer.status), `${answer.status} ${answer.text}`);
    assert.ok(JSON.stringify(answer.json).includes('-32603'), answer.text);
  });
});

suite('the owner hangs', () => {
  test('stopped (SIGSTOP): 504 or 503 within the time-out, never 404; then it goes on', async t => {
    const replicas = await conf(t, 2);
    const limpet = await gateway(t, { replicas: urls(replicas),
      server: { timeouts: { first_byte: '700ms', connect: '500ms' }, gone_after: '30s' } });
    const owned = await sessionOn(limpet, replicas);
    replicas[0].proc.kill('SIGSTOP');
    try {
      for (let i = 0; i < 3; i++) {
        const answer = await owned.r1.ask('ping');
        assert.ok([503, 504].includes(answer.status), `${answer.status} ${answer.text}`);
        assertRpcError(answer, { status: answer.status, code: -32603, id: answer.json.id });
        if (answer.status === 503) assert.equal(answer.headers['retry-after'], '1');
        assert.ok(answer.ms < 1500, `${answer.ms} ms`);
      }
      assert.equal(await owned.r2.tool('whoami'), 'r2', 'the other replica is not touched');
    } finally {
      replicas[0].proc.kill('SIGCONT');
    }
    await sleep(500);
    assert.equal(await owned.r1.tool('count'), 'r1 1', 'the session lives on');
  });

  test('an address that swallows connections: 503 in doubt, 404 once gone', async t => {
    const replica = await tiny(t, 'r1');
    const [other] = await tinies(t, 1);
    const limpet = await gateway(t, { replicas: [replica.url, other.url], server: {
      balance: 'round_robin', timeouts: { connect: '200ms', first_byte: '400ms' },
      gone_after: '1500ms' } });
    const session = await Session.open(limpet.url);
    assert.equal(await session.tool('whoami'), 'r1');
    await replica.stop();
    await blackHole(t, replica.port);
    const began = performance.now();
    const seen = [];
    while (performance.now() - began < 6000 && seen.at(-1) !== 404) {
      const answer = await session.ask('ping');
      seen.push(answer.status);
      await sleep(150);
    }
    assert.ok(seen.every(s => [404, 503, 504].includes(s)), `${seen}`);
    assert.ok(seen.length > 1 && seen[0] !== 404, `doubt comes first: ${seen}`);
    assert.equal(seen.at(-1), 404, `doubt ends by itself: ${seen}`);
  });
});

test('lists and pings on an idle connection that died are sent again, calls are not', async t => {
  const replica = await tiny(t, 'r1');
  const limpet = await gateway(t, { replicas: [replica.url] });
  const session = await Session.open(limpet.url);
  for (let i = 0; i < 5; i++) {
    await session.tool('whoami');
    replica.server.closeIdleConnections();
    const answer = await session.post(request(i, i % 2 ? 'ping' : 'tools/list'));
    assert.equal(answer.status, 200, answer.text);
    assert.ok(answerOf(answer).result);
  }
});
