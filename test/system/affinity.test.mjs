// Sessions and the replica that owns them: cases AFF-01 to AFF-15 as far as a gateway has a part in
// them. Small in-process replicas let each test see what really reached which of them.
import assert from 'node:assert/strict';
import http from 'node:http';
import { suite, test } from 'node:test';
import { session as officialSession } from './lib/flow.mjs';
import { folder, gateway, keyFile, newKey } from './lib/gateway.mjs';
import { send } from './lib/http.mjs';
import { freePort } from './lib/ports.mjs';
import { conf, everything, urls } from './lib/replicas.mjs';
import { assertLost, post, POST_HEADERS, request, Session } from './lib/rpc.mjs';
import { tinies, tiny } from './lib/tiny.mjs';

const TICKET = /^[\x21-\x7e]{1,512}$/;

// A whole session by hand; every step must be answered by the owner.
async function life(url, { step = async one => one() } = {}) {
  const session = await step(() => Session.open(url));
  const owner = await step(() => session.tool('whoami'));
  const listed = await step(() => session.ask('tools/list'));
  assert.equal(listed.status, 200, listed.text);
  assert.equal(await step(() => session.tool('count')), `${owner} 2`, 'state stayed');
  const ended = await step(() => session.delete());
  assert.ok([200, 202, 204].includes(ended.status), `DELETE: ${ended.status} ${ended.text}`);
  return owner;
}

suite('a session stays with the replica that opened it', () => {
  test('AFF-01 48 sessions over 12 replicas, no cookies, a fresh connection per request', async t => {
    const replicas = await tinies(t, 12);
    const limpet = await gateway(t, { replicas: urls(replicas) });
    const owners = [];
    for (let i = 0; i < 48; i += 6) {
      owners.push(...await Promise.all(Array.from({ length: 6 }, () => life(limpet.url))));
    }
    assert.equal(owners.length, 48);
    assert.equal(new Set(owners).size, 12, 'every replica took sessions');
    for (const replica of replicas) {
      assert.equal(replica.sessions.size, 0, 'each DELETE reached the owner');
      const lost = replica.requests.filter(seen => seen.headers.cookie);
      assert.deepEqual(lost, []);
    }
  });

  test('AFF-03 kept and fresh connections do equally well, DELETE too', async t => {
    const replicas = await tinies(t, 3);
    const limpet = await gateway(t, { replicas: urls(replicas) });
    for (const agent of [false, new http.Agent({ keepAlive: true, maxSockets: 1 })]) {
      for (let i = 0; i < 12; i++) {
        const session = await Session.open(limpet.url);
        const owner = await session.tool('whoami');
        for (let n = 0; n < 5; n++) {
          const answer = await send(limpet.url, { method: 'POST', agent,
            headers: { ...POST_HEADERS, ...session.headers }, body: request(n, 'tools/list') });
          assert.equal(answer.status, 200, answer.text);
        }
        assert.equal(await session.tool('whoami'), owner);
        assert.equal((await send(limpet.url,
          { method: 'DELETE', headers: session.headers, agent })).status, 200);
      }
      if (agent) agent.destroy();
    }
    for (const replica of replicas) assert.equal(replica.sessions.size, 0);
  });

  test('AFF-04 two replicas: 40 of 40 sessions are good and creations are spread', async t => {
    const replicas = await tinies(t, 2);
    const limpet = await gateway(t, { replicas: urls(replicas) });
    const opened = [];
    for (let i = 0; i < 40; i++) {
      const session = await Session.open(limpet.url);
      const owner = await session.tool('whoami');
      for (let n = 0; n < 5; n++) assert.equal(await session.tool('whoami'), owner);
      opened.push(owner);
    }
    for (const replica of replicas) {
      const share = opened.filter(owner => owner === replica.name).length;
      assert.ok(share >= 10, `${replica.name} opened ${share} of 40`);
    }
  });

  test('AFF-05 two gateways that share only a key file', async t => {
    const replicas = urls(await tinies(t, 3));
    const key = keyFile(t);
    const first = await gateway(t, { replicas, key });
    const second = await gateway(t, { replicas, key });
    const owners = new Set();
    for (let i = 0; i < 12; i++) {
      const session = await Session.open(first.url);
      let turn = 0;
      const other = () => { session.url = turn++ % 2 ? first.url : second.url; };
      other();
      const owner = await session.tool('whoami');
      owners.add(owner);
      for (let n = 2; n < 6; n++) {
        other();
        assert.equal(await session.tool('count'), `${owner} ${n}`);
      }
      other();
      assert.equal((await session.delete()).status, 200);
      other();
      assertLost(await session.ask('ping'), 6);
    }
    assert.equal(owners.size, 3);
  });

  test('AFF-05 gateways that start at the same time agree on the key they make', async t => {
    const replicas = urls(await tinies(t, 3));
    const key = keyFile(t);
    const gateways = await Promise.all(Array.from({ length: 3 }, () => gateway(t, { replicas, key })));
    for (const opener of gateways) {
      const session = await Session.open(opener.url);
      for (const limpet of gateways) {
        session.url = limpet.url;
        await session.tool('whoami');
      }
    }
  });

  for (const [kind, fleet] of Object.entries({ everything, conf })) {
    test(`AFF-15 the unmodified client touches one process per session (${kind})`, async t => {
      const replicas = await fleet(t, 2);
      const limpet = await gateway(t, { replicas: urls(replicas) });
      for (let i = 0; i < 4; i++) await officialSession(limpet.url, kind);
      const opened = kind === 'everything'
        ? replicas.map(r => [...r.proc.log.matchAll(/Session initialized with ID: (\S+)/g)].map(m => m[1]))
        : (await Promise.all(replicas.map(r => r.seen())))
          .map(seen => [...new Set(seen.map(s => s.session).filter(Boolean))]);
      assert.equal(opened.flat().length, 4, 'four sessions were used in all');
      assert.equal(new Set(opened.flat()).size, 4, 'none of them at two processes');
      assert.ok(opened.every(ids => ids.length > 0), 'both processes took some');
    });
  }

  test('several server entries on one listener keep their sessions apart', async t => {
    const [a, b] = [await tinies(t, 2), [await tiny(t, 'b1')]];
    const limpet = await gateway(t, { flags: ['--threads', '1'], servers: [
      { name: 'a', path: '/a/mcp', replicas: urls(a), balance: 'round_robin' },
      { name: 'b', path: '/b/mcp', replicas: urls(b) }] });
    const owners = [];
    for (let i = 0; i < 4; i++) owners.push(await life(limpet.at('/a/mcp')));
    assert.deepEqual(owners.filter(o => o === 'r1').length, 2, 'round robin');
    assert.equal(await life(limpet.at('/b/mcp')), 'b1');
    const session = await Session.open(limpet.at('/a/mcp'));
    session.url = limpet.at('/b/mcp');
    assertLost(await session.ask('ping'), 1);
  });

  test('replicas on unix sockets', async t => {
    const dir = folder(t);
    const replica = await tiny(t, 'u1');
    const relay = http.createServer((req, res) => {
      req.pipe(http.request({ port: replica.port, path: req.url, method: req.method,
        headers: req.headers }, answer => {
        res.writeHead(answer.statusCode, answer.headers);
        answer.pipe(res);
      }));
    });
    await new Promise(resolve => relay.listen(`${dir}/u.sock`, resolve));
    t.after(() => relay.close());
    const limpet = await gateway(t, { replicas: [`unix:${dir}/u.sock:/mcp`] });
    assert.equal(await life(limpet.url), 'u1');
  });
});

suite('what the session id says', () => {
  test('AFF-08 the ticket shows nothing of the replica and is never changed', async t => {
    const replica = await tiny(t, 'named-backend');
    const limpet = await gateway(t, { replicas: [replica.url] });
    const session = await Session.open(limpet.url);
    assert.match(session.id, TICKET);
    assert.ok(session.id.length <= 512);
    const upstream = [...replica.sessions.keys()][0];
    const secrets = [String(replica.port), '127.0.0.1', upstream, upstream.replaceAll('-', '')];
    const readings = [session.id, ...['hex', 'base64', 'base64url'].flatMap(encoding =>
      [0, 1, 2, 3].map(skip => Buffer.from(session.id.slice(4 + skip), encoding).toString('latin1')))];
    for (const reading of readings) {
      for (const secret of secrets) assert.ok(!reading.includes(secret), `${secret} is readable`);
    }
    for (let i = 0; i < 3; i++) {
      const answer = await session.ask('tools/list');
      assert.ok([undefined, session.id].includes(answer.headers['mcp-session-id']),
        'the client only ever sees its own ticket');
    }
    const other = await Session.open(limpet.url);
    assert.notEqual(other.id, session.id);
  });

  test('AFF-08 one bit changed at any place: 404, nothing reaches a replica', async t => {
    const replica = await tiny(t);
    const limpet = await gateway(t, { replicas: [replica.url] });
    const session = await Session.open(limpet.url);
    const good = session.id;
    const before = replica.requests.length;
    const agent = new http.Agent({ keepAlive: true });
    t.after(() => agent.destroy());
    for (let at = 0; at < good.length; at++) {
      for (const bit of [1, 2, 4, 8, 16, 32, 64]) {
        const code = good.charCodeAt(at) ^ bit;
        if (code < 0x21 || code > 0x7e) continue;
        const id = good.slice(0, at) + String.fromCharCode(code) + good.slice(at + 1);
        const answer = await send(limpet.url, { method: 'POST', agent, body: request(1, 'ping'),
          headers: { ...POST_HEADERS, 'mcp-session-id': id } });
        assertLost(answer, 1);
        assert.ok(answer.ms < 1000);
      }
    }
    assert.equal(replica.requests.length, before, 'no replica was asked');
    await session.tool('whoami');
  });

  test('AFF-08 rotation: [new, old] opens old ids, [new] alone answers 404', async t => {
    const replicas = urls(await tinies(t, 3));
    const [oldKey, nextKey] = [newKey(), newKey()];
    const limpet = await gateway(t, { replicas, key: keyFile(t, oldKey) });
    const session = await Session.open(limpet.url);
    const owner = await session.tool('whoami');
    await limpet.restart({ key: keyFile(t, nextKey, oldKey) });
    assert.equal(await session.tool('whoami'), owner);
    const fresh = await Session.open(limpet.url);
    await limpet.restart({ key: keyFile(t, nextKey) });
    assertLost(await session.ask('ping'), 3);
    await fresh.tool('whoami');
  });

  test('AFF-08 a replica that is not configured any more: 404, no connection is tried', async t => {
    const [kept, left] = await tinies(t, 2);
    const key = keyFile(t, newKey());
    const limpet = await gateway(t, { replicas: [left.url], key });
    const session = await Session.open(limpet.url);
    const before = left.requests.length;
    await limpet.restart({ replicas: [kept.url] });
    assertLost(await session.ask('ping'), 1);
    assert.equal(left.requests.length, before);
    assert.equal(kept.requests.length, 0);
  });

  test('ids of random bytes, of every length, are lost sessions', async t => {
    const limpet = await gateway(t, { replicas: urls(await tinies(t, 1)) });
    const ids = ['x', 'lp1_', 'lp1_AAAA', '0'.repeat(36), crypto.randomUUID(),
      'lp1_' + 'A'.repeat(400), '~'.repeat(1500)];
    for (const id of ids) {
      assertLost(await post(limpet.url, request(5, 'ping'), { 'mcp-session-id': id }), 5);
    }
  });

  test('a replica can be named, and then move', async t => {
    const port = await freePort();
    const replica = await tiny(t, 'r1', { port });
    const key = keyFile(t, newKey());
    const named = url => [{ name: 'default', path: '/mcp', replicas: [{ name: 'one', url }] }];
    const limpet = await gateway(t, { servers: named(replica.url), key });
    const session = await Session.open(limpet.url);
    const upstream = [...replica.sessions];
    await replica.stop();
    const moved = await tiny(t, 'moved');
    for (const [id, state] of upstream) moved.sessions.set(id, state);
    limpet.config.servers = named(moved.url);
    await limpet.restart();
    assert.equal(await session.tool('whoami'), 'moved');
  });
});
