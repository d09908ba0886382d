/** The routers that the core is compared with. Each answers with the number of the route, -1 for none. */
import findMyWay from "find-my-way";
import { Memoirist } from "memoirist";
import type { BenchRoute } from "./workload.js";

export interface Router {
  find(host: string, target: string): number;
}

/** What a route carries: an object, since some routers take the number 0 for nothing. */
interface Store {
  number: number;
}

const ignore = () => {};

/** find-my-way: one router per host; a route is its path and everything below it. */
export function buildFindMyWay(routes: readonly BenchRoute[]): Router {
  const hosts = new Map<string, ReturnType<typeof findMyWay>>();
  routes.forEach(({ host, path }, number) => {
    let router = hosts.get(host);
    if (!router) {
      router = findMyWay();
      hosts.set(host, router);
    }
    const store: Store = { number };
    router.on("GET", path, ignore, store);
    router.on("GET", `${path}/*`, ignore, store);
  });
  return {
    find(host, target) {
      const found = hosts.get(host)?.find("GET", target);
      return found ? (found.store as Store).number : -1;
    },
  };
}

/** memoirist: one router per host, as above. */
export function buildMemoirist(routes: readonly BenchRoute[]): Router {
  const hosts = new Map<string, Memoirist<Store>>();
  routes.forEach(({ host, path }, number) => {
    let router = hosts.get(host);
    if (!router) {
      router = new Memoirist<Store>();
      hosts.set(host, router);
    }
    const store: Store = { number };
    router.add("GET", path, store);
    router.add("GET", `${path}/*`, store);
  });
  return { find: (host, target) => hosts.get(host)?.find("GET", target)?.store.number ?? -1 };
}

/** What one would write by hand: a Map of paths per host, asked for the path and then for each of its parents. */
export function buildMaps(routes: readonly BenchRoute[]): Router {
  const hosts = new Map<string, Map<string, number>>();
  routes.forEach(({ host, path }, number) => {
    let paths = hosts.get(host);
    if (!paths) {
      paths = new Map();
      hosts.set(host, paths);
    }
    paths.set(path, number);
  });
  return {
    find(host, target) {
      const paths = hosts.get(host);
      if (!paths) return -1;
      let path = target;
      for (;;) {
        const number = paths.get(path);
        if (number !== undefined) return number;
        const cut = path.lastIndexOf("/");
        if (cut <= 0) return paths.get("/") ?? -1;
        path = path.slice(0, cut);
      }
    },
  };
}
