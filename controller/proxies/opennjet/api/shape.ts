/**
 * Readers of JSON values: each gives a value of a known type, or throws a ShapeError that says where it is wrong. Fields
 * that are not known are passed over, since releases add some.
 */
export type Reader<T> = (value: unknown, where: string) => T;

export class ShapeError extends Error {
  override readonly name = "ShapeError";
}

function primitive<T extends string | number | boolean>(type: string, is: (value: unknown) => value is T): Reader<T> {
  return (value, where) => {
    if (is(value)) return value;
    throw new ShapeError(`${where || "the answer"} is no ${type}`);
  };
}

export const text = primitive("text", (value): value is string => typeof value === "string");
export const number = primitive("number", (value): value is number => typeof value === "number");
export const boolean = primitive("boolean", (value): value is boolean => typeof value === "boolean");

export function list<T>(of: Reader<T>): Reader<T[]> {
  return (value, where) => {
    if (!Array.isArray(value)) throw new ShapeError(`${where || "the answer"} is no array`);
    return value.map((entry, i) => of(entry, `${where}[${i}]`));
  };
}

export function record<T>(of: Reader<T>): Reader<Record<string, T>> {
  return (value, where) => {
    const entries = Object.entries(members(value, where)).map(([name, entry]) => [name, of(entry, `${where}.*`)]);
    return Object.fromEntries(entries);
  };
}

/** A field that may be missing. */
export function optional<T>(of: Reader<T>): Reader<T | undefined> {
  return (value, where) => (value === undefined || value === null ? undefined : of(value, where));
}

export function object<T>(fields: { [K in keyof T]: Reader<T[K]> }): Reader<T> {
  return (value, where) => {
    const given = members(value, where);
    const read = {} as T;
    for (const name of Object.keys(fields) as (keyof T & string)[]) {
      const field = fields[name](given[name], where ? `${where}.${name}` : name);
      if (field !== undefined) read[name] = field;
    }
    return read;
  };
}

/** `of`, with the fields of what was read under other names. */
export function map<T, U>(of: Reader<T>, change: (value: T) => U): Reader<U> {
  return (value, where) => change(of(value, where));
}

export function members(value: unknown, where: string): Record<string, unknown> {
  if (typeof value === "object" && value !== null && !Array.isArray(value)) return value as Record<string, unknown>;
  throw new ShapeError(`${where || "the answer"} is no object`);
}
