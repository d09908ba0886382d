import { compareText } from "../model/age.js";
import type { ObjectChange } from "../model/routing-model.js";
import { type ObjectRef, refText } from "../resources/object-ref.js";
import type { FileObject } from "./object-file.js";

interface Place {
  file: string;
  /** Position among the objects of the file. */
  index: number;
  content: FileObject;
}

/** An object that stands in several places; the first one counts. */
export interface DuplicateObject {
  ref: ObjectRef;
  /** File of each place, the one that counts first. */
  files: string[];
}

/** All objects of a set of files. An object that stands in several places is the first one, by file name and position. */
export class ObjectRegistry {
  readonly #places = new Map<string, Place[]>();
  readonly #keysOfFile = new Map<string, Set<string>>();
  readonly #duplicates = new Set<string>();

  /** Puts the objects of a file in the place of those it had before, and returns which objects are different now. */
  replaceFile(file: string, objects: readonly FileObject[]): ObjectChange[] {
    const before = this.#keysOfFile.get(file) ?? new Set<string>();
    const now = new Map<string, Place[]>();
    for (const [index, content] of objects.entries()) {
      const key = refText(content.ref);
      now.set(key, [...(now.get(key) ?? []), { file, index, content }]);
    }
    const changes: ObjectChange[] = [];
    for (const key of new Set([...before, ...now.keys()])) {
      const change = this.#replacePlaces(key, file, now.get(key) ?? []);
      if (change !== undefined) changes.push(change);
    }
    if (now.size > 0) this.#keysOfFile.set(file, new Set(now.keys()));
    else this.#keysOfFile.delete(file);
    return changes;
  }

  /** Objects in more than one place, by name. */
  duplicates(): DuplicateObject[] {
    return [...this.#duplicates].sort(compareText).map((key) => {
      const places = this.#places.get(key)!;
      return { ref: places[0].content.ref, files: places.map(({ file }) => file) };
    });
  }

  #replacePlaces(key: string, file: string, now: Place[]): ObjectChange | undefined {
    const before = this.#places.get(key) ?? [];
    const others = before.filter((place) => place.file !== file);
    const places = [...others, ...now].sort((a, b) => compareText(a.file, b.file) || a.index - b.index);
    if (places.length > 0) this.#places.set(key, places);
    else this.#places.delete(key);
    if (places.length > 1) this.#duplicates.add(key);
    else this.#duplicates.delete(key);
    const [was] = before;
    const [is] = places;
    if (is === undefined) return was && { ...was.content.ref, object: undefined };
    if (was?.content.signature === is.content.signature) return undefined;
    return { ...is.content.ref, object: is.content.object };
  }
}
