// A replica that is itself a balancer with cookie affinity, and clients that keep no cookies: [C6] to
// the letter for the gateway, cases AFF-05, AFF-09, COO-01 to COO-05 as far as they are its part.
import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { connect, sessions } from './lib/flow.mjs';
import { gateway, keyFile } from './lib/gateway.mjs';
import { openEvents, send } from './lib/http.mjs';
import { assertLost, initialize, notification, post, request, Session } from './lib/rpc.mjs';
import { AFFINITY, balancer, haproxy } from './lib/sticky.mjs';
import { tiny } from './lib/tiny.mjs';

const JAR = ['--cookie-jar'];
const SSE = ['--sse-path', '/sse'];

const behind = (t, proxy, flags, more = {}) =>
  gateway(t, { replicas: [proxy.url('/mcp')], flags, ...more });

// One whole session; every answer is looked at for cookies. Returns the pod that served it.
async function life(limpet, { step = async one => one() } = {}) {
  const session = await step(() => Session.open(limpet.url));
  const pod = await step(() => session.tool('ping'));
  const listed = await step(() => session.ask('tools/list'));
  assert.equal(listed.status, 200, listed.text);
  assert.deepEqual(listed.json.result.tools.map(tool => tool.name), ['ping']);
  const stream = await step(() => session.get());
  assert.equal(stream.status, 405);
  const ended = await step(() => session.delete());
  assert.equal(ended.status, 204);
  for (const answer of [session.initialized, listed, stream, ended]) {
    assert.equal(answer.headers['set-cookie'], undefined);
  }
  return pod;
}

// A session of the old transport by hand: its stream, and what a POST to its endpoint gets.
async function openOld(limpet) {
  const stream = await openEvents(limpet.at('/sse'), { headers: { accept: 'text/event-stream' } });
  assert.equal(stream.status, 200);
  const { data } = await stream.events.until(r => r.events.find(e => e.type === 'endpoint'));
  return { stream, say: body => post(limpet.at(data), body), close: () => stream.close() };
}

async function lifeOld(limpet) {
  const { stream, say, close } = await openOld(limpet);
  assert.equal(stream.headers['set-cookie'], undefined);
  const ask = async (id, body) => {
    const answer = await say(body);
    assert.equal(answer.status, 202, answer.text);
    assert.equal(answer.headers['set-cookie'], undefined);
    return (await stream.events.message(m => m.id === id)).result;
  };
  const pod = (await ask(0, initialize(0))).serverInfo.name;
  await say(notification('notifications/initialized'));
  const { tools } = await ask(1, request(1, 'tools/list'));
  assert.deepEqual(tools.map(tool => tool.name), ['ping']);
  close();
  return pod;
}

const podsOf = log => new Set(log.map(row => row.pod));

for (const [what, start] of [['a naive proxy', balancer], ['HAProxy', haproxy]]) {
  suite(`[C6] two pods behind ${what}`, () => {
    test('off: initialize works and tools/list is lost', async t => {
      const limpet = await behind(t, await start(t), []);
      const opened = await post(limpet.url, initialize(0));
      assert.equal(opened.status, 200, opened.text);
      assert.match(opened.headers['set-cookie'].join(), new RegExp(`^${AFFINITY}=pod-[ab]`));
      const session = new Session(limpet.url);
      session.id = opened.headers['mcp-session-id'];
      assertLost(await session.ask('tools/list'), 1);
    });

    test('on: a client without cookies has its whole session', async t => {
      const proxy = await start(t);
      const limpet = await behind(t, proxy, JAR);
      const { results, failures } = await sessions(30, 5, () => life(limpet));
      assert.deepEqual(failures, []);
      assert.equal(new Set(results).size, 2, 'both pods took sessions');
    });

    test('on: the official client', async t => {
      const limpet = await behind(t, await start(t), JAR);
      const { client, transport } = await connect(limpet.url);
      const { tools } = await client.listTools();
      assert.deepEqual(tools.map(tool => tool.name), ['ping']);
      await transport.terminateSession();
      await client.close();
    });

    test('old SSE, off: the POST is lost', async t => {
      const limpet = await behind(t, await start(t), SSE);
      const { say, close } = await openOld(limpet);
      assertLost(await say(initialize(0)), 0);
      close();
    });

    test('old SSE, on: stream and POSTs share the jar (COO-02)', async t => {
      const limpet = await behind(t, await start(t), [...SSE, ...JAR]);
      const { results, failures } = await sessions(12, 4, () => lifeOld(limpet));
      assert.deepEqual(failures, []);
      assert.equal(new Set(results).size, 2, 'both pods took sessions');
    });
  });
}

suite('what the balancer sees', () => {
  test('on: one pod for every request, and the cookie on each but the first', async t => {
    const proxy = await balancer(t);
    const limpet = await behind(t, proxy, JAR);
    for (let i = 0; i < 4; i++) {
      proxy.log.length = 0;
      const pod = await life(limpet);
      assert.deepEqual([...podsOf(proxy.log)], [pod]);
      const [first, ...rest] = proxy.log;
      assert.deepEqual(first, { method: 'POST', pod, cookies: [], rpc: 'initialize' });
      assert.equal(rest.length, 5);
      for (const row of rest) assert.deepEqual(row.cookies, [pod]);
    }
  });

  test('a client\'s own cookies go along, under the same name the jar\'s wins', async t => {
    const replica = await tiny(t, 'r', { headers: { 'set-cookie': ['LB=a; Path=/', 'x=1'] } });
    const limpet = await gateway(t, { replicas: [replica.url], flags: JAR });
    const session = await Session.open(limpet.url, { headers: { cookie: 'k=v; LB=mine' } });
    assert.equal((await session.ask('tools/list')).status, 200);
    const [opened, ...rest] = replica.requests;
    assert.equal(opened.headers.cookie, 'k=v; LB=mine');
    for (const seen of rest) assert.equal(seen.headers.cookie, 'k=v; LB=a; x=1');
  });

  // Every answer brings a new value and only the newest counts: an engine that did not know of the
  // last answer, because another one had it, would send a stale one.
  for (const threads of [1, 4]) {
    test(`COO-04 a cookie that is renewed by every answer, ${threads} thread(s)`, async t => {
      const proxy = await balancer(t, { renews: true });
      const limpet = await behind(t, proxy, [...JAR, '--threads', String(threads)]);
      const { results, failures } = await sessions(20, 4, () => life(limpet));
      assert.deepEqual(failures, []);
      assert.equal(new Set(results).size, 2, 'both pods took sessions');
      for (const row of proxy.log) assert.ok(row.cookies.length <= 1, 'no request carries two');
    });
  }

  test('a Secure cookie over http is dropped and named, its value is in no log', async t => {
    const proxy = await balancer(t, { attributes: '-s3cret; Secure' });
    const limpet = await behind(t, proxy, JAR);
    const opened = await post(limpet.url, initialize(0));
    assert.equal(opened.headers['set-cookie'], undefined);
    await limpet.proc.says(`the cookie ${AFFINITY} of replica `);
    assert.doesNotMatch(limpet.proc.log, /s3cret/);
  });
});

suite('more than one gateway', () => {
  test('AFF-05 the cookie goes with the id: every step at another gateway', async t => {
    const proxy = await balancer(t);
    const key = keyFile(t);
    const first = await behind(t, proxy, JAR, { key });
    const second = await behind(t, proxy, JAR, { key });
    const { results, failures } = await sessions(50, 5, async () => {
      const session = await Session.open(first.url);
      session.url = second.url;
      const pod = await session.tool('ping');
      session.url = first.url;
      assert.equal(await session.tool('ping'), pod);
      session.url = second.url;
      assert.equal((await session.delete()).status, 204);
      return pod;
    });
    assert.deepEqual(failures, []);
    assert.equal(new Set(results).size, 2);
  });

  test('a restart, kill -9 too, loses no session', async t => {
    const proxy = await balancer(t);
    const limpet = await behind(t, proxy, JAR);
    const opened = await Promise.all(Array.from({ length: 8 }, () => Session.open(limpet.url)));
    const pods = await Promise.all(opened.map(session => session.tool('ping')));
    await limpet.restart();
    assert.deepEqual(await Promise.all(opened.map(session => session.tool('ping'))), pods);
  });

  test('cookies too long for the id are kept by this gateway, which says so', async t => {
    const long = 'v'.repeat(600);
    const replica = await tiny(t, 'r', { headers: { 'set-cookie': `L=${long}` } });
    const limpet = await gateway(t, { replicas: [replica.url], flags: JAR });
    const session = await Session.open(limpet.url);
    assert.ok(session.id.length <= 1024);
    assert.equal(await session.tool('whoami'), 'r');
    assert.equal(replica.requests.at(-1).headers.cookie, `L=${long}`);
    await limpet.proc.says(/the cookies of a new session take \d+ bytes, too many for its id/);
    await limpet.restart();
    assert.equal(await session.tool('whoami'), 'r');
    assert.equal(replica.requests.at(-1).headers.cookie, undefined);
  });
});

suite('a jar and its session', () => {
  test('COO-05 two servers and two sessions share nothing', async t => {
    const replicas = await Promise.all(['a', 'b'].map(name =>
      tiny(t, name, { headers: { 'set-cookie': `SRV=${name}` } })));
    const limpet = await gateway(t, { servers: replicas.map((replica, i) =>
      ({ name: replica.name, path: `/${i}/mcp`, replicas: [replica.url], cookie_jar: true })) });
    const opened = await Promise.all([0, 1].map(i => Session.open(limpet.at(`/${i}/mcp`))));
    for (let n = 0; n < 3; n++) {
      for (const [i, session] of opened.entries()) {
        await session.tool('whoami');
        assert.equal(replicas[i].requests.at(-1).headers.cookie, `SRV=${replicas[i].name}`);
      }
    }
    // Another session at the same server begins without.
    await Session.open(limpet.at('/0/mcp'));
    const opening = replicas[0].requests.findLast(seen => seen.json?.method === 'initialize');
    assert.equal(opening.headers.cookie, undefined);
  });

  test('COO-05 ended sessions leave no memory behind', async t => {
    // Too long for the id, so that each session has a jar of its own in the gateway.
    const replica = await tiny(t, 'r', { headers: { 'set-cookie': `L=${'v'.repeat(1200)}` } });
    // A sanitizer that keeps freed memory for a while must not keep much.
    const env = { ASAN_OPTIONS: `${process.env.ASAN_OPTIONS ?? ''}:quarantine_size_mb=1` };
    const limpet = await gateway(t, { replicas: [replica.url], env,
      flags: [...JAR, '--log-level', 'error'] });
    const openAndClose = async () => {
      const opened = await post(limpet.url, initialize(0));
      const headers = { 'mcp-session-id': opened.headers['mcp-session-id'] };
      assert.equal((await send(limpet.url, { method: 'DELETE', headers })).status, 200);
    };
    const run = async count => {
      const { failures } = await sessions(count, 10, openAndClose);
      assert.deepEqual(failures, []);
      replica.requests.length = 0;
      return limpet.proc.memory();
    };
    const before = await run(1000);
    const after = await run(Number(process.env.JAR_SESSIONS ?? 3000));
    assert.ok(after < before * 1.1, `${before} bytes after the first 1,000, then ${after}`);
  });

  test('a jar that nothing is put into changes no byte [C5]', async t => {
    const seen = [];
    for (const flags of [[], JAR]) {
      const replica = await tiny(t, 'r', { idOf: () => 'fixed' });
      const limpet = await gateway(t, { replicas: [replica.url], flags });
      const headers = { cookie: 'k=v;; l=w ',
        traceparent: `00-${'1'.repeat(32)}-${'2'.repeat(16)}-01` };
      const session = await Session.open(limpet.url, { headers });
      await session.ask('tools/list');
      await session.delete();
      const fixed = raw => raw.map(text => text.replaceAll(String(replica.port), 'REPLICA')
        .replaceAll(String(limpet.port), 'LIMPET').replace(/^1.1 limpet-[0-9a-f]+$/, 'VIA'));
      seen.push(replica.requests.map(one => [one.method, one.url, ...fixed(one.raw),
        one.bytes.toString()]));
    }
    assert.equal(seen[0].length, 4);
    assert.deepEqual(seen[0], seen[1]);
  });

  test('a stream\'s head renews the cookie before its first event', async t => {
    const proxy = await balancer(t, { renews: true });
    const limpet = await behind(t, proxy, [...SSE, ...JAR]);
    const { stream, say, close } = await openOld(limpet);
    for (let id = 0; id < 5; id++) {
      assert.equal((await say(request(id, 'ping'))).status, 202);
      await stream.events.message(m => m.id === id);
    }
    close();
    assert.equal(podsOf(proxy.log).size, 1);
    assert.ok(proxy.log.slice(1).every(row => row.cookies.length === 1));
  });
});
