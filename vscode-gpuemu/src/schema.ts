// The JSON Schema of a configuration, walked by keys.

import type { TomlContext } from './tomlContext.ts';

/** As much of JSON Schema as the configuration's uses. */
export interface Schema {
  $ref?: string;
  $defs?: Record<string, Schema>;
  type?: string | string[];
  description?: string;
  properties?: Record<string, Schema>;
  additionalProperties?: Schema | boolean;
  required?: string[];
  items?: Schema;
  enum?: unknown[];
  const?: unknown;
  anyOf?: Schema[];
  oneOf?: Schema[];
  allOf?: Schema[];
}

export interface Suggestion {
  label: string;
  /** What is written. */
  text: string;
  description?: string;
  kind: 'table' | 'key' | 'value';
}

export class ConfigSchema {
  constructor(private readonly root: Schema) {}

  /** A schema and everything that it refers to or is composed of. */
  private parts(schema: Schema): Schema[] {
    const referred = schema.$ref === undefined ? [] : [this.referred(schema.$ref)];
    const parts = [...referred, ...(schema.anyOf ?? []), ...(schema.oneOf ?? []), ...(schema.allOf ?? [])];
    return [schema, ...parts.flatMap((part) => this.parts(part))];
  }

  private referred(reference: string): Schema {
    const name = reference.replace('#/$defs/', '');
    return this.root.$defs?.[name] ?? {};
  }

  private below(schema: Schema, key: string): Schema | undefined {
    for (const part of this.parts(schema)) {
      const known = part.properties?.[key];
      if (known !== undefined) {
        return known;
      }
      if (part.items !== undefined) {
        const item = this.below(part.items, key);
        if (item !== undefined) {
          return item;
        }
      }
      if (typeof part.additionalProperties === 'object') {
        return part.additionalProperties;
      }
    }
    return undefined;
  }

  /** The schema that keys lead to. */
  at(path: readonly string[]): Schema | undefined {
    return path.reduce<Schema | undefined>((schema, key) => schema && this.below(schema, key), this.root);
  }

  /** What a key is for. */
  description(path: readonly string[]): string | undefined {
    const schema = this.at(path);
    return schema && this.parts(schema).find((part) => part.description !== undefined)?.description;
  }

  private properties(schema: Schema): [string, Schema][] {
    return this.parts(schema).flatMap((part) => [
      ...Object.entries(part.properties ?? {}),
      ...(part.items === undefined ? [] : this.properties(part.items)),
    ]);
  }

  private isTable(schema: Schema): boolean {
    return this.parts(schema).some((part) => part.properties !== undefined || typeof part.additionalProperties === 'object');
  }

  private isArrayOfTables(schema: Schema): boolean {
    return this.parts(schema).some((part) => part.items !== undefined && this.isTable(part.items));
  }

  private values(schema: Schema): (string | boolean)[] {
    const all = this.parts(schema).flatMap((part) => [
      ...(part.enum ?? []),
      ...(part.const === undefined ? [] : [part.const]),
      ...(part.type === 'boolean' || (Array.isArray(part.type) && part.type.includes('boolean')) ? [true, false] : []),
      ...(part.items === undefined ? [] : this.values(part.items)),
    ]);
    return all.filter((value) => typeof value === 'string' || typeof value === 'boolean');
  }

  /** What may be written where the cursor is. */
  suggestions(context: TomlContext): Suggestion[] {
    const table = this.at(context.table);
    if (table === undefined) {
      return [];
    }
    const unique = (found: Suggestion[]): Suggestion[] => [...new Map(found.map((one) => [one.label, one])).values()];
    if (context.kind === 'value') {
      const value = context.key === undefined ? undefined : this.below(table, context.key);
      const found = value === undefined ? [] : this.values(value);
      return unique(
        found.map((one) => ({
          label: String(one),
          text: typeof one === 'string' && !context.quoted ? JSON.stringify(one) : String(one),
          kind: 'value',
        })),
      );
    }
    const described = (schema: Schema): string | undefined =>
      this.parts(schema).find((part) => part.description !== undefined)?.description;
    const found = this.properties(table).flatMap(([name, schema]): Suggestion[] => {
      const suggestion = { label: name, description: described(schema) };
      if (context.kind === 'key') {
        return [{ ...suggestion, text: `${name} = `, kind: 'key' }];
      }
      const fits = context.array ? this.isArrayOfTables(schema) : this.isTable(schema) || context.table.length > 0;
      return fits ? [{ ...suggestion, text: name, kind: 'table' }] : [];
    });
    return unique(found);
  }
}
