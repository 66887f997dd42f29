// Peers that are looked up, [S6] [S3]: in a file, and by a name with an address for each sidecar.
// Who comes is found and who leaves is forgotten without a restart; an owner that nobody knows is
// 404 when all are known, and 503 while they are not.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { renameSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { suite, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { folder, keyFile, newKey } from './lib/gateway.mjs';
import { send } from './lib/http.mjs';
import { freePort } from './lib/ports.mjs';
import { LIMPET, run } from './lib/proc.mjs';
import { assertLost, assertRpcError, initialize, post, request, Session,
  SESSION } from './lib/rpc.mjs';
import { sidecar } from './lib/sidecars.mjs';
import { tinies, tiny } from './lib/tiny.mjs';

const UUID = '7d6f3c1e-9a51-4a0c-8d7e-0c7c6f1b2a34';
const OFTEN = ['--peers-every', '200ms'];
const PATIENCE = 15_000;

const ping = (limpet, id) => post(limpet.url, request('q7', 'ping'), { [SESSION]: id });

function assertUnsettled(answer) {
  assertRpcError(answer, { status: 503, id: 'q7' });
  assert.equal(answer.headers['retry-after'], '1');
}

// Asks until the answer is what it will be; on the way only 503 is allowed.
async function settled(limpet, id) {
  for (const end = performance.now() + PATIENCE; ;) {
    const answer = await ping(limpet, id);
    if (answer.status !== 503) return answer;
    assertUnsettled(answer);
    assert.ok(performance.now() < end, 'still 503');
    await sleep(100);
  }
}

// Asks until the status is that one.
async function becomes(limpet, id, status) {
  for (const end = performance.now() + PATIENCE; ;) {
    const answer = await ping(limpet, id);
    if (answer.status === status) return answer;
    assert.ok(performance.now() < end, `still ${answer.status}, not ${status}`);
    await sleep(100);
  }
}

suite('a file of peers', () => {
  const entry = (self, port) => `${self}=http://127.0.0.1:${port}\n`;
  function replace(file, text) {
    writeFileSync(`${file}.new`, text);
    renameSync(`${file}.new`, file);
  }

  test('that is not there yet, comes, changes, and is spoilt', async t => {
    const file = path.join(folder(t), 'peers');
    const key = keyFile(t, newKey());
    const replicas = await tinies(t, 3);
    const common = { key, flags: ['--ids', 'owner', '--peers-file', file, ...OFTEN] };
    const one = await sidecar(t, { ...common, self: 'm1', local: replicas[0].url });
    await one.proc.says(/peers cannot be looked up in \S+: there is no such file/, PATIENCE);
    const two = await sidecar(t, { ...common, self: 'm2', local: replicas[1].url });
    const session = await Session.open(two.url);
    assertUnsettled(await ping(one, session.id));
    assertUnsettled(await ping(one, `m9.${UUID}`));

    let text = `# ours\n${entry('m1', one.port)}${entry('m2', two.port)}`;
    replace(file, text);
    assert.equal((await settled(one, session.id)).status, 200);
    assertLost(await settled(one, `m9.${UUID}`), 'q7');
    await one.proc.says(/peer m2 is found/, PATIENCE);

    const three = await sidecar(t, { ...common, self: 'm3', local: replicas[2].url });
    const other = await Session.open(three.url);
    replace(file, text += entry('m3', three.port));
    assert.equal((await settled(one, other.id)).status, 200, 'known at once: never 404');
    for (const limpet of [one, two, three]) { /* and by all, from any to any */
      assert.equal((await settled(limpet, session.id)).status, 200);
      assert.equal((await settled(limpet, other.id)).status, 200);
    }

    replace(file, `${text}m4=nonsense\n`);
    await one.proc.says(/peers cannot be looked up in \S+: line 5 is not a peer/, PATIENCE);
    assert.equal((await ping(one, session.id)).status, 200, 'those that are known stay');
    assertUnsettled(await ping(one, `m8.${UUID}`));
    replace(file, entry('m3', three.port));
    await one.proc.says(/peer m2 has left/, PATIENCE);
    assert.equal((await becomes(one, session.id, 404)).status, 404);
    assert.equal((await ping(one, other.id)).status, 200);
  });

  test('status and metrics tell who was found', async t => {
    const file = path.join(folder(t), 'peers');
    writeFileSync(file, 'm2=http://127.0.0.1:1\n');
    const local = await tiny(t);
    const admin = `127.0.0.1:${await freePort()}`;
    const limpet = await sidecar(t, { local: local.url, self: 'm1', admin,
      flags: ['--peers-file', file, ...OFTEN] });
    await limpet.proc.says(/peer m2 is found \(127\.0\.0\.1:1\)/, PATIENCE);
    const { json } = await send(`http://${admin}/status`);
    assert.deepEqual(json.servers[0].replicas[1], { name: 'm2', state: 'up', peer: true });
    const { text } = await send(`http://${admin}/metrics`);
    assert.match(text, /\nlimpet_peer_looks_total\S* [1-9]/);
    assert.match(text, /\nlimpet_peer_look_failures_total\S* 0\n/);
  });
});

// A program with a hosts file of its own, and with a name server that does not answer.
function ownNames(t) {
  const names = path.join(folder(t), 'hosts');
  const servers = path.join(folder(t), 'resolv.conf');
  writeFileSync(servers, 'nameserver 127.0.0.1\noptions timeout:1 attempts:1\n');
  const script = 'mount --bind "$0" /etc/hosts && mount --bind "$1" /etc/resolv.conf && shift && ' +
    'exec "$@"';
  const how = ['-rm', '-m'].find(flags => spawnSync('unshare', [flags, 'sh', '-c', script, servers,
    servers, 'true']).status === 0);
  return { how, wrap: ['unshare', how, 'sh', '-c', script, names, servers],
    write: (...addresses) => writeFileSync(names, // into the same file: it is mounted
      ['127.0.0.1 localhost', ...addresses.map(one => `${one} sidecars.test`), ''].join('\n')) };
}

suite('a name with the addresses of all sidecars', () => {
  test('three with sealed ids: who comes, who leaves, and no name at all', async t => {
    const names = ownNames(t);
    if (!names.how) { t.skip('this system lets nobody mount a hosts file of his own'); return; }
    const port = await freePort();
    const key = keyFile(t, newKey());
    const replicas = await tinies(t, 3);
    const at = i => `127.0.0.${10 + i}`;
    const begin = i => sidecar(t, { key, port, self: `m${i}`, local: replicas[i - 1].url,
      host: at(i), wrap: names.wrap,
      flags: ['--peers-dns', `http://sidecars.test:${port}`, ...OFTEN] });
    names.write(at(1), at(2));
    const [one, two] = [await begin(1), await begin(2)];
    const session = await Session.open(two.url);
    assert.match(session.id, /^lp1_/);
    assert.equal((await settled(one, session.id)).status, 200);
    for (let i = 0; i < 20; i++) {
      session.url = [one, two][i % 2].url;
      assert.equal(await session.tool('whoami'), 'r2');
    }

    const three = await begin(3);
    const other = await Session.open(three.url);
    names.write(at(1), at(2), at(3));
    await becomes(one, other.id, 200);
    await one.proc.says(/peer m3 is found/, PATIENCE);

    names.write();
    await one.proc.says(/peers cannot be looked up in sidecars\.test/, PATIENCE);
    assert.equal((await ping(one, other.id)).status, 200, 'those that are known stay');

    names.write(at(1), at(3));
    await one.proc.says(/peer m2 has left/, PATIENCE);
    await becomes(one, session.id, 404);
    assert.equal((await ping(one, other.id)).status, 200);
    assert.ok(!one.proc.log.includes('peer m1'), 'it is no peer of its own');
  });

  test('another owner answers at an address; who has another key is nobody', async t => {
    const names = ownNames(t);
    if (!names.how) { t.skip('this system lets nobody mount a hosts file of his own'); return; }
    const port = await freePort();
    const key = keyFile(t, newKey());
    const local = await tiny(t);
    const common = { local: local.url, port, wrap: names.wrap,
      flags: ['--ids', 'owner', '--peers-dns', `http://sidecars.test:${port}`, ...OFTEN] };
    names.write('127.0.0.11', '127.0.0.12', '127.0.0.13');
    const one = await sidecar(t, { ...common, key, self: 'm1', host: '127.0.0.11' });
    const two = await sidecar(t, { ...common, key, self: 'm2', host: '127.0.0.12' });
    await sidecar(t, { ...common, self: 'm3', host: '127.0.0.13' });
    await one.proc.says(/127\.0\.0\.13:\d+ does not tell its owner id as a sidecar with our key/, PATIENCE);
    await one.proc.says(/peer m2 is found/, PATIENCE);
    await two.proc.stop('SIGKILL');
    const four = await sidecar(t, { ...common, key, self: 'm4', host: '127.0.0.12' });
    const session = await Session.open(four.url);
    assert.equal((await settled(one, session.id)).status, 200);
    assertLost(await settled(one, `m2.${UUID}`), 'q7');
    assertLost(await settled(one, `m3.${UUID}`), 'q7');
    assert.equal((await post(one.url, initialize())).status, 200);
  });
});

suite('what it will not start with', () => {
  const LOCAL = ['--local', 'http://127.0.0.1:1/mcp'];
  const CASES = [
    ['a name with a path', ['--self', 'm1', '--peers-dns', 'http://a:1/mcp'], /without a path/],
    ['a name with https', ['--self', 'm1', '--peers-dns', 'https://a:1'], /certificates do not/],
    ['two places', ['--self', 'm1', '--peers-dns', 'http://a:1', '--peers-file', 'f'], /either/],
    ['nobody to be found', ['--ids', 'owner', '--peers-file', 'f'], /name it with --self/],
    ['no key to share', ['--self', 'm1', '--peers-file', 'f'], /sidecars with peers share one/],
  ];
  for (const [what, args, pattern] of CASES) {
    test(what, async t => {
      const ended = await run(LIMPET, ['sidecar', ...LOCAL, '--admin', 'off', '--listen',
        `127.0.0.1:${await freePort()}`, '--key-file', `${folder(t)}/none/key`, ...args],
      { env: { FLY_MACHINE_ID: '', HOSTNAME: '' } });
      assert.notEqual(ended.code, 0);
      assert.match(ended.stderr, pattern);
    });
  }
});
