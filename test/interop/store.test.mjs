// The client of the store (src/store) against real Redis servers, case OWN-06 with real parts: one
// that is killed and comes back with what it had on disk, wrong passwords, one that is frozen, a
// cluster that loses a primary and moves slots. What is counted must be what Redis has.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import path from 'node:path';
import { test } from 'node:test';
import { folder } from '../system/lib/gateway.mjs';
import { freePort } from '../system/lib/ports.mjs';
import { LIMPET } from '../system/lib/proc.mjs';
import { startCluster, startRedis, until } from '../system/lib/redis.mjs';
import { Authority } from '../system/lib/tls.mjs';

const DRIVER = path.join(process.env.LIMPET_BUILD ?? path.dirname(LIMPET),
  'test/interop/store-driver');
const WITHIN = 30000;

// The driver, and what it has said. A call resolves with { outcome, mayHaveRun, reply }.
class Store {
  #pending = new Map();
  #waiting = [];
  #number = 0;
  said = [];

  constructor(t, url, { callMs = 0, graceMs = 0, replicas = 0, cacert = [] } = {}) {
    this.child = spawn(DRIVER, [url, callMs, graceMs, replicas, ...[cacert].flat()].map(String),
      { stdio: ['pipe', 'pipe', 'inherit'] });
    this.ended = new Promise(resolve => this.child.once('close', resolve));
    t.after(() => this.child.kill('SIGKILL'));
    let rest = '';
    this.child.stdout.setEncoding('utf8').on('data', text => {
      const lines = (rest + text).split('\n');
      rest = lines.pop();
      lines.forEach(line => this.#take(line));
    });
  }

  #take(line) {
    const [, id, outcome, ran, reply] = /^(\d+) (\S+) ?(\S*) ?(.*)$/.exec(line) ?? [];
    if (id === undefined) {
      this.said.push(line);
      this.#waiting.forEach(look => look());
      return;
    }
    this.#pending.get(id)?.({ outcome, mayHaveRun: ran === 'yes', reply });
    this.#pending.delete(id);
  }

  // Waits for a line that was not there before `after`; tells where it stands.
  async says(pattern, after = 0) {
    const found = () => this.said.findIndex((line, i) => i >= after && pattern.test(line));
    await until(`${pattern} in ${JSON.stringify(this.said)}`, () => found() >= 0, WITHIN);
    return found();
  }

  say(line) { this.child.stdin.write(`${line}\n`); }

  #ask(verb, words) {
    const id = String(++this.#number);
    const answer = new Promise(resolve => this.#pending.set(id, resolve));
    this.say([verb, id, ...words].join(' '));
    return answer;
  }

  call(kind, key, ...words) { return this.#ask('call', [kind, key, ...words]); }
  eval(kind, script, keys, ...args) {
    return this.#ask('eval', [kind, script, keys.length, ...keys, ...args]);
  }

  get unanswered() { return this.#pending.size; }

  // Ends with its input, and well: the sanitizers have their say then.
  async end() {
    this.child.stdin.end();
    assert.equal(await this.ended, 0);
  }
}

test('calls, scripts and channels of one server', async t => {
  const socket = path.join(folder(t), 'socket');
  const redis = await startRedis(t, { password: 'geheim', flags: ['--unixsocket', socket] });
  await new Store(t, `unix:${socket}`).says(/^down PASSWORD The store at unix:/);
  const store = new Store(t, redis.url);
  const first = await Promise.all([
    store.call('w', 'k', 'SET', 'k', 'v1'), store.call('r', 'k', 'GET', 'k'),
    store.call('r', 'none', 'GET', 'none'), store.call('r', 'k', 'LPOP', 'k'),
    store.eval('w', 0, ['n'], 5), store.eval('w', 1, ['k'], 'v1', 'v2'),
    store.eval('w', 1, ['k'], 'v1', 'v3')]);
  assert.deepEqual(first.map(one => `${one.outcome} ${one.reply.split(' ')[0]}`), [
    'ANSWERED OK', 'ANSWERED v1', 'ANSWERED nil', 'REFUSED WRONGTYPE', 'ANSWERED 5',
    'ANSWERED [1,v2]', 'ANSWERED [0,v2]']);
  assert.match(store.said[0], /^up NONE The store at 127\.0\.0\.1:\d+ is up\.$/);
  store.say('subscribe news');
  await store.says(/^subscribed news$/);
  await store.call('w', '-', 'PUBLISH', 'news', 'hello');
  await store.says(/^message news hello$/);
  // A server that has forgotten all scripts gets the whole text.
  assert.equal(await redis.ask('SCRIPT', 'FLUSH'), 'OK');
  assert.equal((await store.eval('w', 0, ['n'], 5)).reply, '10');
  await store.end();
});

test('a server killed and started again: nothing that was answered is lost', async t => {
  const redis = await startRedis(t);
  const store = new Store(t, redis.url);
  store.say('subscribe news');
  await store.says(/^subscribed news$/);
  let answered = 0, unknown = 0, down = 0;
  let going = true;
  const work = (async () => {
    while (going) {
      const { outcome, mayHaveRun } = await store.eval('w', 0, ['n'], 1);
      if (outcome === 'ANSWERED') answered++;
      else if (outcome === 'UNKNOWN') { assert.ok(mayHaveRun); unknown++; }
      else {
        assert.equal(outcome, 'DOWN');
        assert.ok(!mayHaveRun);
        down++;
        await new Promise(resolve => setTimeout(resolve, 5));
      }
    }
  })();
  for (let round = 0; round < 3; round++) {
    const before = answered;
    await until('some are answered', () => answered > before + 50, WITHIN);
    const told = store.said.length;
    await redis.kill();
    await store.says(/^down (BROKEN|REFUSED) The store at .*\.$/, told);
    await until('it is said to be down', () => down > 0, WITHIN);
    await redis.start();
    const up = await store.says(/^up NONE/, told);
    await store.says(/^subscribed news$/, up - 1);
  }
  going = false;
  await work;
  const counted = Number((await store.call('r', 'n', 'GET', 'n')).reply);
  assert.ok(counted >= answered && counted <= answered + unknown,
    `${counted} are counted, ${answered} answered, ${unknown} unknown`);
  assert.ok(unknown <= 3, `${unknown} unknown`);
  await store.end();
});

test('each reason for not being up is named, and no secret in it', async t => {
  const redis = await startRedis(t, { password: 'geheim' });
  const wrong = new Store(t, redis.url.replace('geheim', 'falsch'));
  const at = await wrong.says(/^down PASSWORD The store at \S+ refuses the user or password/);
  assert.ok(!wrong.said[at].includes('falsch'));
  assert.equal((await wrong.call('r', 'k', 'GET', 'k')).outcome, 'DOWN');
  await new Store(t, `redis://${redis.address}`).says(/^down PASSWORD/);
  await new Store(t, `${redis.url}/99`).says(/^down DATABASE/);
  await new Store(t, redis.url.replace('redis:', 'redis+cluster:')).says(/^down NO_CLUSTER/);
  await new Store(t, `redis://127.0.0.1:${await freePort()}`).says(/^down REFUSED/);
  await new Store(t, `rediss://${redis.address}`).says(/^down TLS/);
  const several = new Store(t, `redis://:geheim@127.0.0.1:${await freePort()},${redis.address}`);
  await several.says(/^up/);
  const replica = await startRedis(t, { password: 'geheim', flags: [
    '--replicaof', '127.0.0.1', redis.port, '--masterauth', 'geheim'] });
  await new Store(t, replica.url).says(/^down READONLY/);
  await new Store(t, `redis://:geheim@${replica.address},${redis.address}`).says(/^up/);
});

test('behind TLS: only with a certificate that somebody trusted has signed', async t => {
  const authority = new Authority(t);
  const { tlsUrl: url } = await startRedis(t, { password: 'geheim', authority });
  const store = new Store(t, url, { cacert: authority.file });
  const big = 'x'.repeat(3000);
  for (let n = 0; n < 20; n++) {
    assert.equal((await store.call('w', 'k', 'SET', 'k', big)).outcome, 'ANSWERED');
  }
  assert.equal((await store.call('r', 'k', 'GET', 'k')).reply, big);
  await store.end();
  await new Store(t, url, { cacert: new Authority(t).file }).says(/^down TLS/);
});

test('a primary that becomes a replica: the other one is found, in time', async t => {
  const first = await startRedis(t);
  const second = await startRedis(t, { flags: ['--replicaof', '127.0.0.1', first.port] });
  await until('in step', async () =>
    /master_link_status:up/.test(await second.ask('INFO', 'replication')), WITHIN);
  const store = new Store(t, `redis://${first.address},${second.address}`, { callMs: 15000 });
  assert.equal((await store.eval('w', 0, ['n'], 1)).reply, '1');
  await until('it is there too', async () => await second.ask('GET', 'n') === '1', WITHIN);
  assert.equal(await second.ask('REPLICAOF', 'NO', 'ONE'), 'OK');
  assert.equal(await first.ask('REPLICAOF', '127.0.0.1', second.port), 'OK');
  assert.equal((await store.eval('w', 0, ['n'], 1)).reply, '2');
  assert.equal(await second.ask('GET', 'n'), '2');
  await store.end();
});

test('a server that is frozen: time-outs, then down, and it goes on by itself', async t => {
  const redis = await startRedis(t);
  const store = new Store(t, redis.url, { callMs: 1200 });
  assert.equal((await store.call('w', 'k', 'SET', 'k', '1')).outcome, 'ANSWERED');
  redis.freeze();
  assert.equal((await store.call('w', 'k', 'SET', 'k', '2')).outcome, 'TIMEOUT');
  await store.says(/^down TIMEOUT/);
  redis.thaw();
  await store.says(/^up/, 2);
  assert.equal((await store.call('r', 'k', 'GET', 'k')).outcome, 'ANSWERED');
  await store.end();
});

test('writes that are waited for on a replica', async t => {
  const primary = await startRedis(t);
  const alone = new Store(t, primary.url, { replicas: 1, callMs: 3000 });
  const short = await alone.call('w', 'k', 'SET', 'k', '1');
  assert.deepEqual(short, { outcome: 'UNCONFIRMED', mayHaveRun: true, reply: 'OK' });
  await alone.end();
  const replica = await startRedis(t, { flags: ['--replicaof', '127.0.0.1', primary.port] });
  await until('in step', async () =>
    /master_link_status:up/.test(await replica.ask('INFO', 'replication')), WITHIN);
  const store = new Store(t, primary.url, { replicas: 1, callMs: 10000 });
  const many = await Promise.all(Array.from({ length: 50 }, () => store.eval('w', 0, ['n'], 1)));
  assert.ok(many.every(one => one.outcome === 'ANSWERED'));
  assert.equal(await replica.ask('GET', 'n'), '50');
  await store.end();
});

// Increments of a counter, one after the other, until `stop`; what became of them.
function counting(store, key, between = 0) {
  const sums = { answered: 0, unknown: 0, refused: {} };
  let going = true;
  const work = (async () => {
    while (going) {
      const { outcome, mayHaveRun } = await store.eval('w', 0, [key], 1);
      if (outcome === 'ANSWERED') sums.answered++;
      else if (mayHaveRun) sums.unknown++;
      else {
        sums.refused[outcome] = (sums.refused[outcome] ?? 0) + 1;
        await new Promise(resolve => setTimeout(resolve, 5));
      }
      if (between) await new Promise(resolve => setTimeout(resolve, between));
    }
  })();
  return { sums, stop: async () => { going = false; await work; return sums; } };
}

async function assertCounted(store, key, { answered, unknown, refused }) {
  const counted = Number((await store.call('r', key, 'GET', key)).reply);
  assert.ok(counted >= answered && counted <= answered + unknown,
    `${key}: ${counted} are counted, ${answered} answered, ${unknown} unknown, ` +
    `refused ${JSON.stringify(refused)}`);
}

// Moves the slot of `key` as `redis-cli --cluster reshard` does, with a look in the middle of it.
async function move(cluster, key, from, to, inBetween) {
  const slot = await from.ask('CLUSTER', 'KEYSLOT', key);
  const [fromId, toId] = [await cluster.idOf(from), await cluster.idOf(to)];
  assert.equal(await to.ask('CLUSTER', 'SETSLOT', slot, 'IMPORTING', fromId), 'OK');
  assert.equal(await from.ask('CLUSTER', 'SETSLOT', slot, 'MIGRATING', toId), 'OK');
  await inBetween();
  for (;;) {
    const keys = (await from.ask('CLUSTER', 'GETKEYSINSLOT', slot, 100)).split('\n').filter(Boolean);
    if (keys.length === 0) break;
    await from.ask('MIGRATE', '127.0.0.1', to.port, '', 0, 5000, 'KEYS', ...keys);
  }
  for (const node of [to, from]) await node.ask('CLUSTER', 'SETSLOT', slot, 'NODE', toId);
}

test('a cluster: slots that move and a primary that dies, while calls go on', async t => {
  const cluster = await startCluster(t);
  const store = new Store(t, cluster.url, { callMs: 5000, graceMs: 15000, replicas: 1 });
  const keys = ['{a}n', '{b}n', '{c}n', '{d}n', '{e}n'];
  const first = await Promise.all(keys.map(key => store.call('w', key, 'SET', key, 0)));
  assert.ok(first.every(one => one.outcome === 'ANSWERED'), JSON.stringify(first));
  assert.match(store.said[0], /^up NONE The store at \S+ is up, a cluster\.$/);
  store.say('subscribe news');
  await store.says(/^subscribed news$/);
  await store.call('w', '-', 'PUBLISH', 'news', 'hello');
  await store.says(/^message news hello$/);

  const runs = keys.map(key => counting(store, key, 1));
  const [from, to] = [await cluster.primaryOf('{a}n'), await cluster.primaryOf('{c}n')];
  assert.notEqual(from, to);
  let both;
  await move(cluster, '{a}n', from, to, async () => {
    // Not there yet on either side: the old owner says ASK.
    const fresh = await store.call('w', '{a}fresh', 'SET', '{a}fresh', 'x');
    assert.deepEqual(fresh, { outcome: 'ANSWERED', mayHaveRun: true, reply: 'OK' });
    assert.equal((await store.call('r', '{a}fresh', 'GET', '{a}fresh')).reply, 'x');
    // One here and one there: TRYAGAIN, until they are together.
    both = store.call('r', '{a}n', 'MGET', '{a}n', '{a}fresh');
  });
  assert.equal(await cluster.primaryOf('{a}n'), to);
  assert.match((await both).reply, /^\[\d+,x\]$/);
  const moved = runs[0].sums.answered;
  await until('the counter goes on where it is now', () => runs[0].sums.answered > moved + 20, WITHIN);

  const dies = await cluster.primaryOf('{b}n');
  const told = store.said.length;
  await dies.kill();
  await until('another one has taken over', async () => {
    const now = await cluster.primaryOf('{b}n');
    return now && now !== dies;
  }, WITHIN);
  // Alone it can confirm nothing; the dead one comes back as its replica.
  await dies.start();
  const failed = runs[1].sums.answered;
  await until('and is used', () => runs[1].sums.answered > failed + 20, WITHIN);
  for (const [i, run] of runs.entries()) await assertCounted(store, keys[i], await run.stop());
  assert.ok(!store.said.slice(told).some(line => line.startsWith('down')), store.said.join('\n'));
  // Wherever it listened: by now it listens somewhere.
  await until('messages come again', async () => {
    await store.call('w', '-', 'PUBLISH', 'news', 'again');
    return store.said.includes('message news again');
  }, WITHIN);
  t.diagnostic(JSON.stringify(runs.map(run => run.sums)));
  await store.end();
});
