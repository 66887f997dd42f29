// `limpet sidecar`, one beside each replica, behind a balancer that picks at random: every session
// holds, by forwarding and by the platform's replay. Cases AFF-02, AFF-14, OWN-01, OWN-02, OWN-04, OWN-05,
// STA-03, LIF-04, LIF-08.
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import http from 'node:http';
import net from 'node:net';
import path from 'node:path';
import { suite, test } from 'node:test';
import { session as officialSession, sessions } from './lib/flow.mjs';
import { folder, keyFile, newKey } from './lib/gateway.mjs';
import { openEvents, send } from './lib/http.mjs';
import { freePort } from './lib/ports.mjs';
import { LIMPET, run } from './lib/proc.mjs';
import { ask as askFor, assertNotHere, assertOwnerTable, METHODS,
  UUID } from './lib/owner-table.mjs';
import { conf, oldSse, urls } from './lib/replicas.mjs';
import { assertLost, assertRpcError, initialize, post, POST_HEADERS, request, Session, SESSION,
  toolCall } from './lib/rpc.mjs';
import { fly, limpetReplicas, randomChoice, sidecar, sidecars } from './lib/sidecars.mjs';
import { tinies, tiny } from './lib/tiny.mjs';

const COUNT = 12;
const OWNER = ['--ids', 'owner'];
const REPLAY = [...OWNER, '--replay', 'fly'];

// Twenty calls of one session; the row has an O for each that its owner answered, as it counts.
async function row(url) {
  const one = await Session.open(url);
  let text = '';
  for (let n = 1; n <= 20; n++) {
    const answer = await one.callTool('counter');
    const is = answer.status === 200 && answer.text.includes(`"text":"${n}"`);
    text += is ? 'O' : 'x';
  }
  const owner = await one.tool('whoami');
  const ended = await one.delete();
  const after = await one.ask('ping');
  return { text, owner, id: one.id, ended: ended.status, after: after.status };
}

async function hundredSessions(url) {
  const { results, failures } = await sessions(100, 10, () => row(url));
  assert.deepEqual(failures, []);
  for (const result of results) {
    assert.equal(result.text.slice(0, 12), 'OOOOOOOOOOOO', '12 of 12');
    assert.equal(result.text, 'OOOOOOOOOOOOOOOOOOOO', '20 of 20');
    assert.ok([200, 202, 204].includes(result.ended), `DELETE: ${result.ended}`);
    assert.equal(result.after, 404, 'the ended session is gone');
  }
  return results;
}

// A request of each method for a session id.
const ask = (limpet, method, id, headers) => askFor(limpet.url, method, id, headers);

suite(`${COUNT} replicas, a sidecar each, any of them for any request`, () => {
  test('control: without sidecars the same balancer loses sessions', async t => {
    const replicas = await limpetReplicas(t, 3);
    const front = await randomChoice(t, replicas.map(url => ({ port: new URL(url).port })));
    let lost = 0;
    for (let i = 0; i < 20; i++) {
      const opened = await post(front.url, initialize());
      const answer = await post(front.url, request(1, 'ping'), { [SESSION]: opened.headers[SESSION] });
      lost += answer.status === 404;
    }
    assert.ok(lost > 3, `${lost} of 20 lost`);
  });

  test('forwarded, owner ids: 20 of 20 in 100 sessions', async t => {
    const all = await sidecars(t, await limpetReplicas(t, COUNT), { flags: OWNER });
    const results = await hundredSessions((await randomChoice(t, all)).url);
    for (const { owner, id } of results) assert.match(id, new RegExp(`^m${owner.slice(1)}\\.`));
    const owners = new Set(results.map(result => result.owner)).size;
    assert.ok(owners > COUNT / 2, `${owners} owners`);
  });

  test('forwarded, sealed ids: 20 of 20 in 100 sessions', async t => {
    const all = await sidecars(t, await limpetReplicas(t, COUNT));
    const results = await hundredSessions((await randomChoice(t, all)).url);
    for (const { id } of results) assert.match(id, /^lp1_/);
  });

  test('replayed by the platform, no peers known: 20 of 20 in 100 sessions', async t => {
    const all = await sidecars(t, await limpetReplicas(t, COUNT), { knows: false, flags: REPLAY });
    const front = await fly(t, all);
    await hundredSessions(front.url);
    assert.ok(front.log.length > 500, `${front.log.length} replays`);
    assert.deepEqual(new Set(front.log.map(entry => entry.method)), new Set(['POST', 'DELETE']));
    for (const entry of front.log) {
      assert.ok(entry.to === entry.id && entry.from !== entry.id && entry.timeout === 5);
      assert.ok(!entry.isStrict && !entry.isLoop);
    }
  });
});

suite('whole sessions of the official client', () => {
  for (const [what, options] of [['sealed ids', {}], ['owner ids', { flags: OWNER }]]) {
    test(`forwarded, ${what}: streams, elicitation, cancel, resumption, DELETE`, async t => {
      const all = await sidecars(t, urls(await conf(t, 3)), options);
      const { url } = await randomChoice(t, all);
      const { results, failures } = await sessions(8, 8, () => officialSession(url, 'conf'));
      assert.deepEqual(failures, []);
      assert.ok(new Set(results.map(result => result.owner)).size > 1);
      for (const result of results) assert.equal(result.lostStatus, 404);
    });
  }

  test('replayed: streams, elicitation, cancel, resumption, DELETE', async t => {
    const all = await sidecars(t, urls(await conf(t, 3)), { knows: false, flags: REPLAY });
    const front = await fly(t, all);
    const { failures } = await sessions(8, 8, () => officialSession(front.url, 'conf'));
    assert.deepEqual(failures, []);
    assert.ok(front.log.some(entry => entry.method === 'GET'), 'a stream was replayed');
  });

  const SSE = ['--sse-path', '/sse'];
  for (const [what, flags, isReplay] of [['forwarded, sealed ids', SSE],
    ['forwarded, owner ids', [...OWNER, ...SSE]], ['replayed', [...REPLAY, ...SSE], true]]) {
    test(`old SSE, ${what}: messages reach their stream`, async t => {
      const locals = urls(await oldSse(t, 3));
      const all = await sidecars(t, locals, { knows: !isReplay, flags });
      const front = await (isReplay ? fly : randomChoice)(t, all);
      const { results, failures } =
        await sessions(6, 6, () => officialSession(front.at('/sse'), 'conf', { sse: true }));
      assert.deepEqual(failures, []);
      assert.ok(new Set(results.map(result => result.owner)).size > 1);
    });
  }
});

suite('AFF-02 the owner-id table', () => {
  for (const [mode, flags, replay] of [['forward', OWNER],
    ['replay', REPLAY, 'prefer_instance=m2;timeout=5s'],
    ['strict replay', [...OWNER, '--replay', 'fly-instance'], 'instance=m2']]) {
    test(`${mode}: all rows; the server sees what is its own`, async t => {
      const local = await tiny(t, 'local');
      const limpet = await sidecar(t, { local: local.url, self: 'm1', flags });
      await assertOwnerTable(limpet.url, { replay });
      for (const { headers } of local.requests) {
        assert.ok([UUID, undefined].includes(headers[SESSION]), `it saw ${headers[SESSION]}`);
      }
      const session = await Session.open(limpet.url);
      assert.match(session.id, /^m1\.[0-9a-f-]{36}$/);
      assert.equal(await session.tool('whoami'), 'local');
      for (const method of METHODS) {
        const answer = await ask(limpet, method);
        assertRpcError(answer, { status: 400, code: -32000, id: method === 'POST' ? 'q7' : null });
      }
    });
  }

  test('forward: a peer\'s, for each method, whatever mark a client makes up', async t => {
    const replicas = await tinies(t, 2);
    const all = await sidecars(t, urls(replicas), { flags: OWNER });
    for (const headers of [{}, { 'limpet-hop': `h1.m1.${'A'.repeat(80)}` }]) {
      for (const method of METHODS) {
        const session = await Session.open(all[1].url);
        const answer = await ask(all[0], method, session.id, headers);
        assert.equal(answer.status, { POST: 200, GET: 405, DELETE: 200 }[method], answer.text);
        const seen = replicas[1].requests.at(-1);
        assert.equal(seen.method, method);
        assert.equal(`m2.${seen.headers[SESSION]}`, session.id);
      }
    }
  });

  test('no owner: ids stay as they are, and no replay header ever', async t => {
    const local = await tiny(t);
    const limpet = await sidecar(t, { local: local.url, flags: REPLAY });
    const session = await Session.open(limpet.url);
    assert.ok(local.sessions.has(session.id), 'the id is the server\'s own');
    assert.equal(await session.tool('count'), 'tiny 1');
    for (const method of METHODS) {
      assertNotHere(await ask(limpet, method, `m2.${UUID}`), method);
      assert.equal(local.requests.at(-1).headers[SESSION], `m2.${UUID}`);
    }
    await limpet.proc.says(/no owner id/);
  });

  test('where the owner id comes from', async t => {
    const local = await tiny(t);
    const minted = async options =>
      (await Session.open((await sidecar(t, { local: local.url, flags: OWNER, ...options })).url)).id;
    const machine = { FLY_MACHINE_ID: 'd8d9034b27e048' };
    const box = createHash('sha256').update('box').digest('hex').slice(0, 16);
    const hostname = [...OWNER, '--self-from-hostname'];
    assert.match(await minted({ self: 'm1', env: machine }), /^m1\./);
    assert.match(await minted({ env: machine }), /^d8d9034b27e048\./);
    assert.match(await minted({ env: { ...machine, HOSTNAME: 'box' }, flags: hostname }), /^d8d9/);
    assert.match(await minted({ env: { HOSTNAME: 'box' }, flags: hostname }),
      new RegExp(`^${box}\\.`));
    assert.match(await minted({ env: { HOSTNAME: 'box' } }), /^[^.]+$/);
    const bad = await sidecar(t, { local: local.url, flags: hostname,
      env: { FLY_MACHINE_ID: 'd8-9', HOSTNAME: 'box' } });
    assert.match((await Session.open(bad.url)).id, /^[^.]+$/);
    await bad.proc.says(/FLY_MACHINE_ID is no owner id/);
  });
});

suite('OWN-02 bodies', () => {
  const big = bytes => {
    const body = toolCall(1, 'whoami', { pad: '' });
    return body.replace('"pad":""', `"pad":"${'x'.repeat(bytes - body.length)}"`);
  };
  const hash = bytes => createHash('sha256').update(bytes).digest('hex');

  test('of any size are forwarded whole; replayed up to the platform\'s limit', async t => {
    const replicas = await tinies(t, 2);
    const all = await sidecars(t, urls(replicas), { flags: REPLAY });
    const opened = await Session.open(all[1].url);
    opened.url = all[0].url;
    const replayed = await opened.post(big(1_000_000));
    assert.equal(replayed.headers['fly-replay'], 'prefer_instance=m2;timeout=5s');
    for (const bytes of [1_000_001, 1_048_577, 3_900_000]) {
      const body = big(bytes);
      assert.equal(Buffer.byteLength(body), bytes);
      const answer = await opened.post(body);
      assert.equal(answer.status, 200, answer.text);
      assert.equal(answer.headers['fly-replay'], undefined);
      assert.equal(hash(replicas[1].requests.at(-1).bytes), hash(body));
    }
    const before = all[0].proc.memory();
    const chunked = await new Promise((resolve, reject) => {
      const req = http.request(all[0].url, { method: 'POST', agent: false,
        headers: { ...POST_HEADERS, ...opened.headers } }, resolve).once('error', reject);
      for (let at = 0, body = big(2_000_000); at < body.length; at += 65_536) {
        req.write(body.slice(at, at + 65_536));
      }
      req.end();
    });
    chunked.resume();
    assert.equal(chunked.statusCode, 200);
    assert.equal(replicas[1].requests.at(-1).bytes.length, 2_000_000);
    assert.ok(all[0].proc.memory() - before < 2_000_000, 'it was passed on while it came');
  });

  test('no peer known: 413 that names the limit, before the body is sent', async t => {
    const local = await tiny(t);
    const limpet = await sidecar(t, { local: local.url, self: 'm1', flags: REPLAY });
    const heads = [{ 'content-length': '1048577' }, { 'transfer-encoding': 'chunked' },
      { 'content-length': '1048577', expect: '100-continue' }];
    for (const head of heads) {
      const answer = await new Promise((resolve, reject) => {
        const req = http.request(limpet.url, { method: 'POST', agent: false,
          headers: { ...POST_HEADERS, ...head, [SESSION]: `m2.${UUID}` } }, async response => {
          let text = '';
          for await (const chunk of response) text += chunk;
          resolve({ status: response.statusCode, headers: response.headers, text });
          req.destroy();
        }).once('error', reject);
        req.flushHeaders();
      });
      const error = assertRpcError(answer, { status: 413, code: -32600 });
      assert.match(error.message, /1,000,000 bytes/);
      assert.equal(answer.headers['fly-replay'], undefined);
    }
    assert.equal(local.requests.length, 0);
  });
});

suite('OWN-01 an owner that is gone', () => {
  test('its sidecar killed: fast answers, 404, and new sessions elsewhere', async t => {
    const all = await sidecars(t, urls(await tinies(t, 2)), { flags: OWNER });
    const session = await Session.open(all[1].url);
    await all[1].proc.stop('SIGKILL');
    session.url = all[0].url;
    const first = await session.ask('ping');
    assert.ok(first.ms < 1500 && [404, 503].includes(first.status), `${first.status} ${first.ms}`);
    for (let i = 0; i < 20; i++) {
      const answer = await session.ask('ping');
      assert.ok(answer.ms < 250, `${answer.ms} ms`);
      assertLost(answer, i + 2);
    }
    assert.match((await Session.open(all[0].url)).id, /^m1\./);
    await all[1].start();
    for (let end = performance.now() + 5000, status; status !== 200;) {
      status = (await session.ask('ping')).status;
      assert.ok(performance.now() < end, `it came back, and still: ${status}`);
    }
  });

  test('its server killed: 404 through either sidecar; nobody stands in', async t => {
    const replicas = await tinies(t, 2);
    const all = await sidecars(t, urls(replicas), { flags: OWNER });
    const session = await Session.open(all[1].url);
    await replicas[1].stop();
    for (const { url } of [all[0], all[1], all[0]]) {
      session.url = url;
      const answer = await session.ask('ping');
      assert.ok([404, 503].includes(answer.status), answer.text);
    }
    assert.equal((await post(all[1].url, initialize())).status, 503);
    assert.equal((await post(all[0].url, initialize())).status, 200);
  });

  test('its sidecar accepts and never answers: so many wait, 504 in time, others as ever', async t => {
    const file = path.join(folder(t), 'limpet.yaml');
    writeFileSync(file, 'timeouts: {first_byte: 1s}\nwaiting_max: 5\n');
    const hung = net.createServer(() => {});
    await new Promise(resolve => hung.listen(0, '127.0.0.1', resolve));
    t.after(() => hung.close());
    const local = await tiny(t);
    const limpet = await sidecar(t, { local: local.url, self: 'm1', flags: ['-c', file, ...OWNER],
      peers: [`m2=http://127.0.0.1:${hung.address().port}`] });
    const own = await Session.open(limpet.url);
    const waiting = Array.from({ length: 8 }, () => ask(limpet, 'POST', `m2.${UUID}`));
    const served = await own.ask('ping');
    assert.ok(served.status === 200 && served.ms < 300, `${served.status} ${served.ms}`);
    const ended = await Promise.all(waiting);
    const late = ended.filter(answer => answer.status === 504);
    const refused = ended.filter(answer => answer.status === 503);
    assert.equal(late.length, 5, 'waiting_max');
    assert.equal(refused.length, 3);
    for (const answer of ended) assertRpcError(answer, { status: answer.status, id: 'q7' });
    for (const answer of late) assert.ok(answer.ms > 900 && answer.ms < 5000, `${answer.ms} ms`);
    for (const answer of refused) {
      assert.ok(answer.ms < 900, `${answer.ms} ms`);
      assert.equal(answer.headers['retry-after'], '1');
    }
    await limpet.proc.says(/"reason":"owner_busy"/);
    const after = await ask(limpet, 'POST', `m2.${UUID}`);
    assert.equal(after.status, 504, 'there is room again');
  });

  test('LIF-08 its server forgot everything: 404 at once through either, no replay', async t => {
    for (const flags of [OWNER, REPLAY]) {
      const replicas = await tinies(t, 2);
      const all = await sidecars(t, urls(replicas), { flags });
      const { id } = await Session.open(all[1].url);
      replicas[1].sessions.clear();
      for (const method of METHODS) {
        const answer = await ask(all[1], method, id, { 'fly-replay-src': 'instance=m1' });
        assertLost(answer, method === 'POST' ? 'q7' : null);
        assert.equal(answer.headers['fly-replay'], undefined);
        if (flags === OWNER) assertLost(await ask(all[0], method, id), method === 'POST' ? 'q7' : null);
      }
    }
  });

  test('every sidecar killed and started again: no session is lost', async t => {
    for (const flags of [OWNER, []]) {
      const all = await sidecars(t, urls(await tinies(t, 3)), { flags });
      const opened = [];
      for (let i = 0; i < 9; i++) opened.push(await Session.open(all[i % 3].url));
      for (const one of all) {
        await one.proc.stop('SIGKILL');
        await one.start();
      }
      for (const [i, session] of opened.entries()) {
        session.url = all[(i + 1) % 3].url;
        assert.equal(await session.tool('whoami'), `r${i % 3 + 1}`);
      }
    }
  });

  test('the platform waits for the owner as long as it is told, then asks another: 404', async t => {
    const hung = net.createServer(() => {});
    await new Promise(resolve => hung.listen(0, '127.0.0.1', resolve));
    t.after(() => hung.close());
    const [one, two] = await sidecars(t, urls(await tinies(t, 2)), { knows: false, flags: REPLAY });
    const front = await fly(t, [one, two,
      { self: 'm9', port: hung.address().port, isOnlyNamed: true }], { second: 100 });
    const answer = await post(front.url, request('q7', 'ping'), { [SESSION]: `m9.${UUID}` });
    assertLost(answer, 'q7');
    assert.ok(answer.ms > 450, `${answer.ms} ms`);
    assert.equal(front.log.length, 1);
    const [entry] = front.log;
    assert.ok(entry.isFallback && !entry.isLoop && entry.id === 'm9' && entry.timeout === 5);
  });

  test('the platform falls back to another machine: 404, not a loop', async t => {
    const all = await sidecars(t, urls(await tinies(t, 3)), { knows: false, flags: REPLAY });
    const front = await fly(t, all);
    const session = await Session.open(all[2].url);
    all[2].isDown = true;
    session.url = front.url;
    for (let i = 0; i < 6; i++) assertLost(await session.ask('ping'), i + 1);
    assert.ok(front.log.length === 6 && front.log.every(entry => !entry.isLoop && entry.to));
  });
});

suite('OWN-04, OWN-05 what travels with a request, and what is believed', () => {
  test('credentials, query and the client\'s address reach the owner', async t => {
    const replicas = await tinies(t, 2);
    const all = await sidecars(t, urls(replicas));
    const session = await Session.open(all[1].url, { headers: { authorization: 'Bearer old' } });
    const answer = await post(`${all[0].url}?tenant=a%20b`, request(1, 'tools/list'),
      { ...session.headers, authorization: 'Bearer fresh', 'x-own': 'kept', origin: all[0].at('') });
    assert.equal(answer.status, 200, answer.text);
    assert.equal(answer.headers[SESSION], session.id, 'the id that the client knows');
    const seen = replicas[1].requests.at(-1);
    assert.equal(seen.headers.authorization, 'Bearer fresh');
    assert.equal(seen.headers['x-own'], 'kept');
    assert.equal(seen.url, '/mcp?tenant=a%20b');
    assert.equal(seen.headers['x-forwarded-for'], '127.0.0.1');
    assert.equal(seen.headers['x-forwarded-host'], `127.0.0.1:${all[0].port}`);
    assert.equal(seen.headers['limpet-hop'], undefined);
    assert.equal(seen.headers[SESSION], [...replicas[1].sessions.keys()].at(-1));
  });

  test('STA-03 the owner checks the caller again, whichever sidecar was asked', async t => {
    const subjects = new Map([['a1', 'alice'], ['b1', 'bob']]);
    const replicas = [await tiny(t, 'r1', { subjects }), await tiny(t, 'r2', { subjects })];
    const all = await sidecars(t, urls(replicas), { flags: OWNER });
    const bearer = token => token && { authorization: `Bearer ${token}` };
    const { id } = await Session.open(all[1].url, { headers: bearer('a1') });
    const both = async (method, token, session = id) => {
      const [here, there] = [await ask(all[1], method, session, bearer(token)),
        await ask(all[0], method, session, bearer(token))];
      assert.equal(there.status, here.status);
      assert.equal(there.text, here.text);
      assert.equal(there.headers['www-authenticate'], here.headers['www-authenticate']);
      return there;
    };
    subjects.set('a2', 'alice'); /* refreshed */
    assert.equal((await both('POST', 'a2')).status, 200);
    assert.equal(replicas[1].requests.at(-1).headers.authorization, 'Bearer a2');
    subjects.delete('a1'); /* and revoked */
    for (const method of METHODS) {
      for (const token of ['a1', 'wrong', undefined]) {
        const refused = await both(method, token);
        assert.equal(refused.status, 401);
        assert.match(refused.headers['www-authenticate'], /^Bearer/);
      }
      assertLost(await both(method, 'b1'), method === 'POST' ? 'q7' : null);
      const unknown = await both(method, 'a2', `m2.${UUID}`);
      assertLost(unknown, method === 'POST' ? 'q7' : null);
      assert.equal(unknown.headers['www-authenticate'], undefined);
    }
    assert.equal((await both('POST', 'a2')).status, 200, 'the session lives on');
  });

  test('a forward that somebody recorded is refused; made-up marks change nothing', async t => {
    const key = keyFile(t, newKey());
    const local = await tiny(t);
    const recorder = await tiny(t, 'recorder');
    const one = await sidecar(t, { local: local.url, self: 'm1', key, flags: OWNER,
      peers: [`m2=http://127.0.0.1:${recorder.port}`] });
    const two = await sidecar(t, { local: local.url, self: 'm2', key, flags: OWNER });
    const session = await Session.open(two.url);
    await ask(one, 'POST', session.id);
    const mark = recorder.requests.at(-1).headers['limpet-hop'];
    assert.match(mark, /^h1\.m2\./);
    const first = await ask(two, 'POST', session.id, { 'limpet-hop': mark });
    assert.equal(first.status, 200);
    const again = await ask(two, 'POST', session.id, { 'limpet-hop': mark });
    assertRpcError(again, { status: 403, id: 'q7' });
    const forged = `${mark.slice(0, -2)}${mark.at(-2) === 'A' ? 'B' : 'A'}${mark.at(-1)}`;
    for (const value of [forged, '1', mark.replace('m2', 'm1')]) {
      assert.equal((await ask(two, 'POST', session.id, { 'limpet-hop': value })).status, 200);
    }
    const before = recorder.requests.length;
    await ask(one, 'POST', session.id, { 'limpet-hop': forged });
    assert.equal(recorder.requests.length, before + 1, 'a client\'s own mark stops no forward');
    assert.notEqual(recorder.requests.at(-1).headers['limpet-hop'], forged);
  });

  test('a wrong list of peers ends in 404, not in a ring', async t => {
    const key = keyFile(t, newKey());
    const local = await tiny(t);
    const common = { local: local.url, key, flags: OWNER };
    const two = await sidecar(t, { ...common, self: 'm2', peers: ['m3=http://127.0.0.1:1'] });
    const one = await sidecar(t, { ...common, self: 'm1',
      peers: [`m3=http://127.0.0.1:${two.port}`] });
    assertLost(await ask(one, 'POST', `m3.${UUID}`), 'q7');
    await two.proc.says(/has our address under a wrong id, ours is m2/);
    assert.equal(local.requests.length, 0);
  });
});

suite('what a sidecar tells', () => {
  test('AFF-14 one neutral text for the client, a reason each for the operator', async t => {
    const [local, other] = [await tiny(t), await freePort()];
    const limpet = await sidecar(t, { local: local.url, self: 'm1', flags: OWNER,
      peers: [`m2=http://127.0.0.1:${other}`] });
    const bodies = [await ask(limpet, 'POST', UUID), await ask(limpet, 'POST', `m1.${UUID}`),
      await ask(limpet, 'POST', `m2.${UUID}`), await ask(limpet, 'POST', `m2.${UUID}`),
      await ask(limpet, 'POST', `m3.${UUID}`),
      await ask(limpet, 'POST', `m2.${UUID}`, { 'fly-replay-src': 'instance=m3' })]
      .map(answer => answer.text);
    for (const body of bodies.slice(3)) assert.equal(body, bodies[0]);
    await limpet.proc.says(/"reason":"session_passed_on"/);
    const reasons = new Set(limpet.records.map(record => record.reason));
    for (const reason of ['session_no_owner', 'session_lost', 'session_owner_gone',
      'session_no_replica', 'session_passed_on']) assert.ok(reasons.has(reason), reason);
  });

  test('LIF-04 it lives while its server is away, and is not ready', async t => {
    const local = await tiny(t);
    const admin = `127.0.0.1:${await freePort()}`;
    const limpet = await sidecar(t, { local: local.url, self: 'm1', flags: OWNER, admin });
    assert.equal((await send(`http://${admin}/ready`)).status, 200);
    await local.stop();
    for (let i = 0; i < 3; i++) assert.equal((await post(limpet.url, initialize())).status, 503);
    for (const method of ['GET', 'HEAD']) {
      const live = await send(`http://${admin}/live`, { method });
      assert.ok(live.status === 200 && live.ms < 250, `${live.status} ${live.ms}`);
      assert.equal((await send(`http://${admin}/ready`, { method })).status, 503);
    }
  });

  test('status: the owner id, and peers without sessions of their own', async t => {
    const local = await tiny(t);
    const admin = `127.0.0.1:${await freePort()}`;
    const limpet = await sidecar(t, { local: local.url, self: 'm1', flags: OWNER, admin,
      peers: ['m1=http://127.0.0.1:1', 'm2=http://127.0.0.1:2'] });
    await Session.open(limpet.url);
    const { json } = await send(`http://${admin}/status`);
    assert.equal(json.owner, 'm1');
    assert.equal(json.ids, 'owner');
    assert.deepEqual(json.servers[0].replicas, [
      { name: 'm1', state: 'up', sessions: 1, incarnation: 1, lost_fresh: 0,
        seems_balanced: false },
      { name: 'm2', state: 'up', peer: true }]);
    const { stdout } = await run(LIMPET, ['status', '--admin', admin]);
    assert.match(stdout, /\nOwner id {2}m1 \(readable ids\)\n/);
    assert.match(stdout, /\n {2}up +1 session +m1\n {2}up +peer +m2\n/);
    const { text } = await send(`http://${admin}/metrics`);
    assert.match(text, /\nlimpet_peer_forwards_total\S* 0\n/);
  });
});

suite('what a sidecar will not start with', () => {
  const CASES = [
    ['a bad owner id', ['--self', 'm-1', '--ids', 'owner'], 64, /self: "m-1" is no owner id/],
    ['a bad id of a peer', ['--self', 'm1', '--peer', 'm_2=http://127.0.0.1:1'], 64,
      /peers: "m_2" is no owner id/],
    ['sealed ids without peers', ['--self', 'm1'], 64, /sealed ids need the list of peers/],
    ['sealed ids without an owner id', ['--peer', 'm2=http://127.0.0.1:1'], 64, /name it with --self/],
    ['peers without a key', ['--self', 'm1', '--peer', 'm2=http://127.0.0.1:1'], 2,
      /sidecars with peers share one/],
    ['a flag of the gateway', ['--self', 'm1', '--threads', '2'], 64, /belongs to limpet gateway/],
    ['two peers of one id', ['--peer', 'm2=http://127.0.0.1:1', '--peer', 'm2=http://127.0.0.1:2'],
      64, /two peers have the owner id m2/],
    ['a peer with a path', ['--peer', 'm2=http://127.0.0.1:1/mcp'], 64, /names a path/],
    ['two servers', ['--local', 'http://127.0.0.1:2/mcp'], 64, /has more than 1 items/],
    ['a server as a word', ['http://127.0.0.1:2/mcp'], 64, /named with --local/],
  ];
  for (const [what, args, code, pattern] of CASES) {
    test(what, async t => {
      const key = `${folder(t)}/none/key`;
      const ended = await run(LIMPET, ['sidecar', '--local', 'http://127.0.0.1:1/mcp', '--admin',
        'off', '--listen', `127.0.0.1:${await freePort()}`, '--key-file', key, ...args],
      { env: { FLY_MACHINE_ID: '', HOSTNAME: '' } });
      assert.equal(ended.code, code, ended.stderr);
      assert.match(ended.stderr, pattern);
    });
  }

  test('what limpet config check says of it', async t => {
    const listen = `127.0.0.1:${await freePort()}`;
    const key = `${folder(t)}/key`;
    const file = path.join(folder(t), 'limpet.yaml');
    const check = more => run(LIMPET, ['config', 'check', '--listen', listen, '--admin',
      'off', '--key-file', key, ...more], { env: { FLY_MACHINE_ID: '', HOSTNAME: '' } });
    const yaml = 'self: m1\nlocal: http://127.0.0.1:1/mcp\npeers: ["m2=http://127.0.0.1:2"]\n';
    writeFileSync(file, yaml);
    const without = await check(['-c', file]);
    assert.equal(without.code, 2);
    assert.match(without.stderr, /sidecars with peers share one/);
    writeFileSync(key, newKey(), { mode: 0o600 });
    const right = await check(['-c', file]);
    assert.equal(right.code, 0, right.stderr);
    assert.match(right.stdout, /The configuration is right: a sidecar with 1 peer\./);
    writeFileSync(file, yaml.replace('m1', 'm-1'));
    assert.match((await check(['-c', file])).stderr, /self: "m-1" is no owner id/);
    const flags = ['--local=http://127.0.0.1:1/mcp', '--self', 'm1', '--ids', 'owner'];
    assert.match((await check(flags)).stdout, /a sidecar with 0 peers\./);
    assert.match((await check([...flags, '--threads', '2'])).stderr, /belongs to limpet gateway/);
  });

  test('a mistake of the file', async t => {
    const file = path.join(folder(t), 'limpet.yaml');
    writeFileSync(file, 'self: m-1\nlocal: http://127.0.0.1:1/mcp\nids: owner\n');
    const ended = await run(LIMPET, ['sidecar', '-c', file]);
    assert.equal(ended.code, 2, ended.stderr);
    assert.match(ended.stderr, /self: "m-1" is no owner id/);
  });

  test('no server beside it', async () => {
    const ended = await run(LIMPET, ['sidecar', '--self', 'm1', '--ids', 'owner']);
    assert.equal(ended.code, 64, ended.stderr);
    assert.match(ended.stderr, /the server beside this sidecar is not given/);
  });
});
