import type { IngressClassFragment } from "../resources/fragments.js";

/** Controller name of the classes that are served, unless another one is set. */
export const CONTROLLER_NAME = "njet.org/ingress-controller";

/** Where objects come from: in a folder our class is taken to exist and to be the default unless the folder says otherwise. */
export type SourceKind = "folder" | "cluster";

/** Which classes are served, as far as the IngressClass objects tell. */
export class ClassRules {
  readonly #ownClass: string;
  readonly #source: SourceKind;
  readonly #controller: string;
  readonly #classes = new Map<string, IngressClassFragment>();

  /** `ownClass` is the value of --ingress-class, `controller` that of --controller-class. */
  constructor(ownClass: string, source: SourceKind, controller = CONTROLLER_NAME) {
    this.#controller = controller;
    this.#ownClass = ownClass;
    this.#source = source;
  }

  set(name: string, fragment: IngressClassFragment | undefined): void {
    if (fragment === undefined) this.#classes.delete(name);
    else this.#classes.set(name, fragment);
  }

  /** Whether the class is one of this controller. */
  owns(fragment: IngressClassFragment | undefined): boolean {
    return fragment?.controller === this.#controller;
  }

  /** Whether objects of the class are served; `className` is undefined for objects that name none. */
  serves(className: string | undefined): boolean {
    if (className === undefined) return this.#isDefault();
    const known = this.#classes.get(className);
    return known === undefined ? className === this.#ownClass : this.owns(known);
  }

  #isDefault(): boolean {
    const own = [...this.#classes.values()].filter((entry) => this.owns(entry));
    if (own.length === 0) return this.#source === "folder";
    return own.some((entry) => entry.isDefault);
  }
}
