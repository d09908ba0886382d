declare module "hashring" {
  export default class HashRing {
    constructor(servers: readonly string[], algorithm?: string, options?: Record<string, unknown>);
    get(key: string): string;
  }
}
