/** Members of upstreams: they are in shared memory, so that every process has the same at once. */

export interface Member {
  id: number;
  server: string;
  weight: number;
  max_conns: number;
  max_fails: number;
  fail_timeout: string;
  slow_start: string;
  route: string;
  backup: boolean;
  down: boolean;
}

interface MemberFacts {
  member: Member;
  /** Of smooth weighted round robin. */
  current: number;
  active: number;
  requests: number;
  selected?: Date;
  checks: { checks: number; fails: number; unhealthy: number; lastPassed?: boolean };
  isUnhealthy: boolean;
  downSince?: number;
}

interface Shared {
  facts: MemberFacts[];
  nextId: number;
}

/** What `PATCH` and `POST` may bring, with its type. */
const FIELDS: Record<string, string> = {
  server: "string",
  weight: "number",
  max_conns: "number",
  max_fails: "number",
  fail_timeout: "string",
  slow_start: "string",
  route: "string",
  backup: "boolean",
  down: "boolean",
  drain: "boolean",
  service: "string",
  app_data: "string",
};

/** An error of `/v1/upstream_api`. */
export class MemberError extends Error {
  constructor(
    readonly status: number,
    readonly code: string,
    message: string,
  ) {
    super(message);
  }
}

export class SharedMembers {
  private readonly upstreams = new Map<string, Shared>();

  constructor(upstreams: Readonly<Record<string, { servers: string[] }>> = {}) {
    for (const [name, { servers }] of Object.entries(upstreams)) {
      this.open(name);
      for (const server of servers) this.add(name, { server, weight: 1 });
    }
  }

  open(name: string): void {
    if (!this.upstreams.has(name)) this.upstreams.set(name, { facts: [], nextId: 0 });
  }

  drop(name: string): void {
    this.upstreams.delete(name);
  }

  names(): string[] {
    return [...this.upstreams.keys()];
  }

  has(name: string): boolean {
    return this.upstreams.has(name);
  }

  members(name: string): Member[] {
    return this.shared(name).facts.map(({ member }) => member);
  }

  /** As `GET .../upstreams/NAME/` shows it. */
  state(name: string): object {
    return { name, peers: this.shared(name).facts.map(shown), keepalive: 0, zombies: 0, zone: name };
  }

  add(name: string, body: unknown): Member {
    const shared = this.shared(name);
    const fields = checked(body);
    const { server } = fields;
    if (typeof server !== "string") throw new MemberError(400, "UpstreamConfFormatError", 'missing "server" argument');
    if (!/^[\w.-]+:\d{1,5}$|^\[[\da-f:]+\]:\d{1,5}$/i.test(server)) {
      throw new MemberError(400, "UpstreamBadAddress", "no port in server");
    }
    const member: Member = {
      id: shared.nextId++,
      weight: 100,
      max_conns: 0,
      max_fails: 1,
      fail_timeout: "10s",
      slow_start: "0s",
      route: "",
      backup: false,
      down: false,
      ...fields,
      server,
    };
    const made = ordered(member);
    const checks = { checks: 0, fails: 0, unhealthy: 0 };
    shared.facts.push({ member: made, current: 0, active: 0, requests: 0, checks, isUnhealthy: false });
    return made;
  }

  change(name: string, id: number, body: unknown): Member {
    const facts = this.facts(name, id);
    const { server, ...fields } = checked(body);
    if (server !== undefined && server !== facts.member.server) {
      throw new MemberError(400, "UpstreamServer Immutable", "server address is immutable");
    }
    facts.member = ordered({ ...facts.member, ...fields });
    return facts.member;
  }

  remove(name: string, id: number): void {
    const { facts } = this.shared(name);
    facts.splice(facts.indexOf(this.facts(name, id)), 1);
  }

  member(name: string, id: number): Member {
    return this.facts(name, id).member;
  }

  /** Smooth weighted round robin; undefined where nobody can take the request. Call the second part when it has ended. */
  pick(name: string): [server: string, ended: () => void] | undefined {
    const usable = this.shared(name).facts.filter(({ member, isUnhealthy }) => !member.down && !isUnhealthy);
    const main = usable.filter(({ member }) => !member.backup);
    const candidates = main.length > 0 ? main : usable;
    let best: MemberFacts | undefined;
    for (const one of candidates) {
      one.current += one.member.weight;
      if (!best || one.current > best.current) best = one;
    }
    if (!best) return undefined;
    const picked = best;
    picked.current -= candidates.reduce((sum, { member }) => sum + member.weight, 0);
    picked.active++;
    picked.requests++;
    // A member that is alone is taken without being picked.
    if (this.shared(name).facts.length > 1) picked.selected = new Date();
    return [picked.member.server, () => picked.active--];
  }

  /** What an active check has found. */
  checked(name: string, server: string, passed: boolean): void {
    const facts = this.upstreams.get(name)?.facts.find(({ member }) => member.server === server);
    if (!facts) return;
    facts.checks.checks++;
    facts.checks.lastPassed = passed;
    if (!passed) facts.checks.fails++;
    if (!passed && !facts.isUnhealthy) {
      facts.checks.unhealthy++;
      facts.downSince = Date.now();
    }
    if (passed) facts.downSince = undefined;
    facts.isUnhealthy = !passed;
  }

  private shared(name: string): Shared {
    const shared = this.upstreams.get(name);
    if (shared) return shared;
    throw new MemberError(404, "UpstreamNotFound", "upstream not found");
  }

  private facts(name: string, id: number): MemberFacts {
    if (!Number.isInteger(id)) throw new MemberError(400, "UpStreamBadServerId", "invalid server id");
    const found = this.shared(name).facts.find(({ member }) => member.id === id);
    if (found) return found;
    throw new MemberError(404, "UpStreamServerNotFound", "server not found");
  }
}

function checked(body: unknown): Partial<Member> {
  const wrong = new MemberError(415, "JsonError", "json error");
  if (typeof body !== "object" || body === null || Array.isArray(body)) throw wrong;
  for (const [name, value] of Object.entries(body)) {
    if (!Object.hasOwn(FIELDS, name) || typeof value !== FIELDS[name]) throw wrong;
  }
  return body as Partial<Member>;
}

/** In the order of fields that OpenNJet writes. */
function ordered(member: Member): Member {
  const { id, server, weight, max_conns, max_fails, fail_timeout, slow_start, route, backup, down, ...rest } = member;
  return { id, server, weight, max_conns, max_fails, fail_timeout, slow_start, route, backup, down, ...rest };
}

function shown({ member, active, requests, checks, isUnhealthy, selected, downSince }: MemberFacts): object {
  return {
    id: member.id,
    server: member.server,
    name: member.server,
    backup: member.backup,
    weight: member.weight,
    state: member.down ? "down" : isUnhealthy ? "unhealthy" : "up",
    active,
    requests,
    responses: { one: 0, two: 0, three: 0, four: 0, five: 0, codes: "{}", total: 0 },
    sent: 0,
    received: 0,
    fails: 0,
    unavail: 0,
    health_checks: {
      checks: checks.checks,
      fails: checks.fails,
      unhealthy: checks.unhealthy,
      ...(checks.lastPassed !== undefined && { last_passed: checks.lastPassed }),
    },
    downtime: downSince === undefined ? 0 : Date.now() - downSince,
    ...(selected && { selected: selected.toISOString() }),
    ...(downSince !== undefined && { downstart: new Date(downSince).toISOString() }),
  };
}
