// Completion and hover in gpuemu.toml, from its JSON Schema. They need no program and work in any workspace.

import { readFileSync } from 'node:fs';
import * as vscode from 'vscode';

import { ConfigSchema, type Schema, type Suggestion } from '../schema.ts';
import { contextAt, keyAt } from '../tomlContext.ts';

export const CONFIGURATION: vscode.DocumentSelector = { pattern: '**/gpuemu.toml' };

const KINDS: Record<Suggestion['kind'], vscode.CompletionItemKind> = {
  table: vscode.CompletionItemKind.Module,
  key: vscode.CompletionItemKind.Property,
  value: vscode.CompletionItemKind.EnumMember,
};

export class ConfigCompletion implements vscode.CompletionItemProvider, vscode.HoverProvider {
  private loaded: ConfigSchema | undefined;

  constructor(private readonly file: string) {}

  /** Read when it is first needed. */
  private get schema(): ConfigSchema {
    this.loaded ??= new ConfigSchema(JSON.parse(readFileSync(this.file, 'utf8')) as Schema);
    return this.loaded;
  }

  provideCompletionItems(document: vscode.TextDocument, position: vscode.Position): vscode.CompletionItem[] {
    const context = contextAt(document.getText().split(/\r?\n/), position.line, position.character);
    if (context === undefined) {
      return [];
    }
    const written = new vscode.Range(position.translate(0, -context.prefix.length), position);
    return this.schema.suggestions(context).map((suggestion) => {
      const item = new vscode.CompletionItem(suggestion.label, KINDS[suggestion.kind]);
      item.insertText = suggestion.text;
      item.range = written;
      item.documentation = suggestion.description;
      return item;
    });
  }

  provideHover(document: vscode.TextDocument, position: vscode.Position): vscode.Hover | undefined {
    const path = keyAt(document.getText().split(/\r?\n/), position.line, position.character);
    const description = path && this.schema.description(path);
    return description === undefined ? undefined : new vscode.Hover(new vscode.MarkdownString(description));
  }
}
