// Real Redis servers of a test: one that writes every command to disk before it answers, or a
// cluster of primaries with a replica each. They can be killed and come back on the same port.
import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { folder } from './gateway.mjs';
import { freePort } from './ports.mjs';
import { run, start } from './proc.mjs';

const DURABLE = ['--appendonly', 'yes', '--appendfsync', 'always', '--save', '',
  '--repl-diskless-sync-delay', 0];
const NODE_TIMEOUT_MS = 2000;
const SLOTS = 16384;

async function until(what, test, within = 30000) {
  const end = performance.now() + within;
  for (;;) {
    const found = await test();
    if (found) return found;
    if (performance.now() > end) throw new Error(`never came: ${what}`);
    await sleep(50);
  }
}

class Redis {
  constructor(t, settings) {
    Object.assign(this, settings);
    this.t = t;
  }

  get address() { return `127.0.0.1:${this.port}`; }
  get url() { return this.#url('redis', this.port); }
  get tlsUrl() { return this.#url('rediss', this.tlsPort); }
  #url(scheme, port) {
    return `${scheme}://${this.password ? `:${this.password}@` : ''}127.0.0.1:${port}`;
  }

  // Starts it (again): same port, same folder, so that it finds what it had.
  async start() {
    const port = ['--port', this.port, '--bind', '127.0.0.1'];
    const password = this.password ? ['--requirepass', this.password] : [];
    this.proc = start(this.t, `redis ${this.port}`, 'redis-server',
      [...port, '--dir', this.dir, ...DURABLE, ...password, ...this.flags].map(String));
    await this.proc.listening(this.port);
    await until('Redis has loaded its data', async () => (await this.ask('PING')) === 'PONG');
    return this;
  }

  // Gone at once, as by a power cut of the process.
  async kill() {
    this.proc.kill('SIGKILL');
    await this.proc.ended;
  }

  // Stopped in mid-work and going on again: it accepts connections and says nothing.
  freeze() { this.proc.kill('SIGSTOP'); }
  thaw() { this.proc.kill('SIGCONT'); }

  // One command by redis-cli; what it prints, without the line end.
  async ask(...words) {
    const { stdout, stderr } = await run('redis-cli', ['-h', '127.0.0.1', '-p', this.port, ...words]
      .map(String), { env: this.password ? { REDISCLI_AUTH: this.password } : {} });
    return (stdout || stderr).trim();
  }
}

// `flags` as on redis-server's command line; `password` is asked of everybody; with an `authority`
// (lib/tls.mjs) there is a second port, at `tlsUrl`, with a certificate of it.
export async function startRedis(t, { flags = [], password, authority } = {}) {
  const settings = { port: await freePort(), dir: folder(t), flags, password };
  if (authority) await addTls(settings, authority);
  return new Redis(t, settings).start();
}

async function addTls(settings, authority) {
  const { key, file } = authority.issue(['IP:127.0.0.1']);
  const keyFile = path.join(settings.dir, 'tls.key');
  writeFileSync(keyFile, key);
  settings.tlsPort = await freePort();
  settings.flags = [...settings.flags, '--tls-port', settings.tlsPort, '--tls-auth-clients', 'no',
    '--tls-key-file', keyFile, '--tls-cert-file', file, '--tls-ca-cert-file', authority.file];
}

class Cluster {
  constructor(nodes) { this.nodes = nodes; }

  // Every node is a seed: any of them may be dead by the time that the URL is used.
  get url() { return `redis+cluster://${this.nodes.map(node => node.address).join(',')}`; }

  // Rows of CLUSTER NODES as a living node sees them: { id, address, isPrimary, isUp, slots }.
  async rows(node = this.nodes.find(one => !one.proc.result)) {
    return (await node.ask('CLUSTER', 'NODES')).split('\n').map(line => {
      const [id, at, flags, , , , , link, ...slots] = line.split(' ');
      return { id, address: at.split('@')[0], isPrimary: flags.includes('master'),
        isUp: !/fail/.test(flags) && (link === 'connected' || flags.includes('myself')),
        slots: slots.join(' ') };
    });
  }

  // Who serves the slot of `key` now.
  async primaryOf(key) {
    const asked = this.nodes.find(node => !node.proc.result);
    const slot = Number(await asked.ask('CLUSTER', 'KEYSLOT', key));
    const holds = range => {
      const [from, to = from] = range.split('-').map(Number);
      return slot >= from && slot <= to;
    };
    const row = (await this.rows(asked)).find(one => one.isPrimary && one.isUp &&
      one.slots.split(' ').some(range => range && !range.startsWith('[') && holds(range)));
    return row && this.nodes.find(node => node.address === row.address);
  }

  async idOf(node) { return node.ask('CLUSTER', 'MYID'); }

  // Until every living node says that all slots are served.
  async whole(within) {
    const living = this.nodes.filter(node => !node.proc.result);
    await until('the cluster is whole', async () => {
      const infos = await Promise.all(living.map(node => node.ask('CLUSTER', 'INFO')));
      return infos.every(info => /cluster_state:ok/.test(info));
    }, within);
  }
}

async function newNodes(t, count, flags) {
  return Promise.all(Array.from({ length: count }, async () => {
    const [port, bus] = [await freePort(), await freePort()];
    return startNode(t, port, bus, flags);
  }));
}

function startNode(t, port, bus, flags) {
  const cluster = ['--cluster-enabled', 'yes', '--cluster-port', bus, '--cluster-node-timeout',
    NODE_TIMEOUT_MS, '--cluster-replica-validity-factor', 0];
  const node = new Redis(t, { port, bus, dir: folder(t), flags: [...cluster, ...flags] });
  return node.start();
}

// By hand, because `redis-cli --cluster create` takes its time.
async function join(nodes, primaryCount) {
  const width = Math.ceil(SLOTS / primaryCount);
  await Promise.all(nodes.map(async (node, i) => {
    await node.ask('CLUSTER', 'SET-CONFIG-EPOCH', i + 1);
    if (i < primaryCount) {
      await node.ask('CLUSTER', 'ADDSLOTSRANGE', i * width, Math.min(SLOTS, (i + 1) * width) - 1);
    }
  }));
  for (const node of nodes.slice(1)) {
    await nodes[0].ask('CLUSTER', 'MEET', '127.0.0.1', node.port, node.bus);
  }
  await Promise.all(nodes.map(node => until('all nodes know each other', async () => {
    const known = (await node.ask('CLUSTER', 'NODES')).split('\n');
    return known.length === nodes.length && !known.some(line => /handshake/.test(line));
  })));
}

// `primaries` primaries with one replica each; the replicas are the second half of `nodes`.
export async function startCluster(t, { primaries = 3, flags = [] } = {}) {
  const nodes = await newNodes(t, primaries * 2, flags);
  await join(nodes, primaries);
  const cluster = new Cluster(nodes);
  const ids = await Promise.all(nodes.slice(0, primaries).map(node => cluster.idOf(node)));
  await Promise.all(nodes.slice(primaries).map((node, i) =>
    until('a replica follows', async () => (await node.ask('CLUSTER', 'REPLICATE', ids[i])) === 'OK')));
  await Promise.all(nodes.slice(primaries).map(node => until('a replica is in step', async () =>
    /master_link_status:up/.test(await node.ask('INFO', 'replication')))));
  await Promise.all(nodes.map(node => until('everybody knows who is a replica', async () =>
    (await cluster.rows(node)).filter(row => !row.isPrimary).length === primaries)));
  await cluster.whole();
  return cluster;
}

export { until };
