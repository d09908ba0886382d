import type { IngressClassFragment } from "../resources/fragments.js";

/** Controller name of the classes that are served. */
export const CONTROLLER_NAME = "njet.org/ingress-controller";

/** Where objects come from: in a folder our class is taken to exist and to be the default unless the folder says otherwise. */
export type SourceKind = "folder" | "cluster";

/** Which classes are served, as far as the IngressClass objects tell. */
export class ClassRules {
  readonly #ownClass: string;
  readonly #source: SourceKind;
  readonly #classes = new Map<string, IngressClassFragment>();

  /** `ownClass` is the value of --ingress-class. */
  constructor(ownClass: string, source: SourceKind) {
    this.#ownClass = ownClass;
    this.#source = source;
  }

  set(name: string, fragment: IngressClassFragment | undefined): void {
    if (fragment === undefined) this.#classes.delete(name);
    else this.#classes.set(name, fragment);
  }

  /** Whether objects of the class are served; `className` is undefined for objects that name none. */
  serves(className: string | undefined): boolean {
    if (className === undefined) return this.#isDefault();
    const known = this.#classes.get(className);
    return known === undefined ? className === this.#ownClass : known.controller === CONTROLLER_NAME;
  }

  #isDefault(): boolean {
    const own = [...this.#classes.values()].filter((entry) => entry.controller === CONTROLLER_NAME);
    if (own.length === 0) return this.#source === "folder";
    return own.some((entry) => entry.isDefault);
  }
}
