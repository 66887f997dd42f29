// The program under test: `limpet gateway` with free ports, a key file and, where a test needs more
// than flags say, a configuration file (JSON, which is YAML too).
import assert from 'node:assert/strict';
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { send } from './http.mjs';
import { freePort } from './ports.mjs';
import { LIMPET, start } from './proc.mjs';

// LIMPET_THREADS runs every test with that many threads, where the test itself does not say.
const THREADS = process.env.LIMPET_THREADS;

// A folder for the files of one test.
export function folder(t) {
  const dir = mkdtempSync(path.join(os.tmpdir(), 'limpet-test-'));
  t.after(() => rmSync(dir, { recursive: true, force: true }));
  return dir;
}

export function keyFile(t, ...keys) {
  const file = path.join(folder(t), 'key');
  if (keys.length > 0) writeFileSync(file, keys.join('\n') + '\n', { mode: 0o600 });
  return file;
}

export const newKey = () => Buffer.from(crypto.getRandomValues(new Uint8Array(32)))
  .toString('base64');

class Gateway {
  constructor(t, settings) {
    Object.assign(this, settings);
    this.t = t;
  }

  get args() {
    const common = ['--listen', `127.0.0.1:${this.port}`, '--admin', `127.0.0.1:${this.adminPort}`,
      '--key-file', this.key];
    const config = this.config ? ['--config', this.configFile] : this.replicas;
    const threads = THREADS && !this.flags.includes('--threads') ? ['--threads', THREADS] : [];
    return ['gateway', ...common, '--access-log', '--log-format', 'json', ...threads, ...this.flags,
      ...config];
  }

  at(pathname) { return `http://127.0.0.1:${this.port}${pathname}`; }
  get url() { return this.at(this.path); }
  admin(pathname) { return send(`http://127.0.0.1:${this.adminPort}${pathname}`); }

  async start() {
    assert.ok(existsSync(LIMPET), `${LIMPET} is not built`);
    if (this.config) writeFileSync(this.configFile, JSON.stringify(this.config, null, 2));
    this.proc = start(this.t, 'limpet gateway', LIMPET, this.args, { env: this.env });
    await this.proc.listening(this.port);
    return this;
  }

  stop(signal, patience) { return this.proc.stop(signal, patience); }

  // Another process in its place: same address, key and (unless changed) replicas.
  async restart({ signal = 'SIGKILL', ...changes } = {}) {
    await this.stop(signal);
    Object.assign(this, changes);
    return this.start();
  }

  // The lines of the JSON access log so far.
  get accessLog() {
    return this.proc.log.split('\n').filter(line => line.startsWith('{')).flatMap(line => {
      try { return [JSON.parse(line)]; } catch { return []; }
    }).filter(record => record.reason !== undefined);
  }

  // Waits for an access record that fits.
  async record(test, within = 3000) {
    const end = performance.now() + within;
    for (;;) {
      const found = this.accessLog.find(test);
      if (found) return found;
      if (performance.now() > end) {
        assert.fail(`no such access record in:\n${this.proc.log.slice(-3000)}`);
      }
      await new Promise(resolve => setTimeout(resolve, 20));
    }
  }
}

// Starts a gateway over `replicas` (URLs). `server` adds keys to its server entry, `config` to the
// top of the file; without both, flags alone are used. `servers` replaces the whole list. The access
// log is always on, as JSON.
export async function gateway(t, { replicas = [], flags = [], server, servers, config, key,
  path: clientPath = '/mcp', port, adminPort, env } = {}) {
  const settings = { replicas, flags, env, path: clientPath, key: key ?? keyFile(t),
    port: port ?? await freePort(), adminPort: adminPort ?? await freePort() };
  if (server || servers || config) {
    settings.configFile = path.join(folder(t), 'limpet.yaml');
    settings.config = { ...config, servers: servers ??
      [{ name: 'default', path: clientPath, replicas, ...server }] };
  }
  return new Gateway(t, settings).start();
}
