// Child processes of a test: started with their output kept, ended by pid, and shown when a test
// fails. Nothing outlives the test file.
import { spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { portOpen } from './ports.mjs';

const LOG_KEPT = 200_000;
const LOG_SHOWN = 1_500;
// A program that measures coverage must end by exit(); all others are killed, which is quicker.
const END_POLITELY = process.env.LIMPET_END === 'politely';
const SECOND_ASK_AFTER = 300;
const here = import.meta.dirname;
const running = new Set();

export const LIMPET = path.resolve(here, '..', process.env.LIMPET ?? '../../build/limpet');
export const NODE = process.execPath;
export const MODULES = path.resolve(here, '../../node_modules');

process.on('exit', () => { for (const proc of running) proc.child.kill('SIGKILL'); });
for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP']) process.on(signal, () => process.exit(1));

export class Proc {
  constructor(name, command, args, { env = {}, cwd } = {}) {
    this.name = name;
    this.stdout = '';
    this.stderr = '';
    this.child = spawn(command, args, {
      cwd, env: { ...process.env, ...env }, stdio: ['ignore', 'pipe', 'pipe'] });
    running.add(this);
    for (const stream of ['stdout', 'stderr']) {
      this.child[stream].setEncoding('utf8').on('data', text => {
        this[stream] = (this[stream] + text).slice(-LOG_KEPT);
      });
    }
    this.ended = new Promise(resolve => {
      this.child.once('error', error => { this.stderr += error.message; resolve({ code: -1 }); });
      this.child.once('close', (code, signal) => resolve({ code, signal }));
    }).then(result => {
      running.delete(this);
      return this.result = result;
    });
  }

  get pid() { return this.child.pid; }
  get log() { return this.stdout + this.stderr; }
  kill(signal) { this.child.kill(signal); }

  async listening(port, within) {
    try {
      await portOpen(port, { within, isDead: () => this.result });
    } catch (error) {
      throw new Error(`${this.name} did not start: ${error.message}\n${this.log.slice(-LOG_SHOWN)}`);
    }
    return this;
  }

  // Ends the process and tells how it ended; one that does not listen is killed after `patience`.
  async stop(signal = 'SIGTERM', patience = 3000) {
    if (this.result) return this.result;
    this.child.kill(signal);
    const timer = setTimeout(() => this.child.kill('SIGKILL'), patience);
    const result = await this.ended;
    clearTimeout(timer);
    return result;
  }

  // Asks twice: the second time the program ends at once, but through exit(), where a build that
  // measures coverage writes down what it has counted.
  async endPolitely() {
    if (!this.result) this.child.kill('SIGTERM');
    await Promise.race([this.ended, sleep(SECOND_ASK_AFTER)]);
    return this.stop('SIGTERM');
  }

  // Waits until the output holds `pattern`; returns the match.
  async says(pattern, within = 3000) {
    const end = performance.now() + within;
    for (;;) {
      const found = this.log.match(pattern);
      if (found) return found;
      if (performance.now() > end) {
        throw new Error(`${this.name} never said ${pattern}:\n${this.log.slice(-LOG_SHOWN)}`);
      }
      await sleep(20);
    }
  }

  // Resident memory in bytes, from the kernel.
  memory() {
    const status = readFileSync(`/proc/${this.pid}/status`, 'utf8');
    return Number(/^VmRSS:\s+(\d+) kB/m.exec(status)[1]) * 1024;
  }
}

// A process that belongs to the test (or suite) `t`: ended after it, its log shown if it failed.
export function start(t, name, command, args, options) {
  const proc = new Proc(name, command, args, options);
  t.after(async () => {
    await (END_POLITELY && command === LIMPET ? proc.endPolitely() : proc.stop('SIGKILL'));
    if (t.passed === false && proc.log) {
      t.diagnostic(`--- ${name}, last output:\n${proc.log.slice(-LOG_SHOWN)}`);
    }
  });
  return proc;
}

// Runs a command to its end.
export async function run(command, args, { within = 10000, ...options } = {}) {
  const proc = new Proc(path.basename(command), command, args, options);
  const timer = setTimeout(() => proc.kill('SIGKILL'), within);
  const { code, signal } = await proc.ended;
  clearTimeout(timer);
  return { code, signal, stdout: proc.stdout, stderr: proc.stderr };
}

export { sleep };
