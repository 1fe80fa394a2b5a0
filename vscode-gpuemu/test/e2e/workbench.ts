// The window of VS Code in a browser, as a user sees it.

import { copyFileSync, mkdirSync } from 'node:fs';
import * as path from 'node:path';

import { chromium, type Browser, type FrameLocator, type Locator, type Page } from 'playwright-core';

/** Milliseconds that anything may take; on a busy machine a run of all cases takes a while. */
const PATIENCE = Number(process.env['GPUEMU_TEST_PATIENCE'] ?? 60_000);

/** Pictures of the README. */
const IN_README = ['problems', 'heat-map'];

export class Workbench {
  private pictures = 0;

  private constructor(
    private readonly browser: Browser,
    readonly page: Page,
    private readonly artifacts: string,
  ) {}

  static async open(address: string, folder: string, artifacts: string): Promise<Workbench> {
    mkdirSync(artifacts, { recursive: true });
    const browser = await chromium.launch({
      executablePath: process.env['GPUEMU_TEST_CHROMIUM'] ?? '/usr/bin/chromium',
      args: ['--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage'],
    });
    const page = await browser.newPage({ viewport: { width: 1360, height: 900 } });
    page.setDefaultTimeout(PATIENCE);
    await page.goto(`${address}/?folder=${encodeURIComponent(folder)}`);
    await page.locator('.monaco-workbench .statusbar').waitFor();
    return new Workbench(browser, page, artifacts);
  }

  async close(): Promise<void> {
    await this.browser.close();
  }

  /** Keeps a picture of the window. With GPUEMU_TEST_WRITE=1 those of the README are written anew. */
  async screenshot(name: string): Promise<void> {
    this.pictures += 1;
    const number = String(this.pictures).padStart(2, '0');
    const file = path.join(this.artifacts, `${number}-${name}.png`);
    await this.page.screenshot({ path: file });
    if (process.env['GPUEMU_TEST_WRITE'] === '1' && IN_README.includes(name)) {
      copyFileSync(file, path.join('images', `${name}.png`));
    }
  }

  private get input(): Locator {
    return this.page.locator('.quick-input-widget:visible input.input');
  }

  /** Runs a command of the palette by its title. */
  async command(title: string): Promise<void> {
    await this.page.keyboard.press('F1');
    await this.input.fill(`>${title}`);
    await this.page.locator('.quick-input-list .monaco-list-row').filter({ hasText: title }).first().click();
  }

  /** Chooses an entry of a list that has popped up. */
  async choose(text: string): Promise<void> {
    await this.page.locator('.quick-input-list .monaco-list-row').filter({ hasText: text }).first().click();
  }

  /** Answers an input box. */
  async answer(text: string): Promise<void> {
    await this.input.fill(text);
    await this.input.press('Enter');
  }

  async openFile(name: string, line?: number): Promise<void> {
    await this.page.keyboard.press('Control+p');
    await this.input.fill(line === undefined ? name : `${name}:${line}`);
    const base = path.basename(name);
    await this.choose(base);
    await this.page.locator('.tab.active').filter({ hasText: base }).waitFor();
    await this.page.locator('.editor-group-container.active .monaco-editor.focused').waitFor();
  }

  /** Puts the cursor of the open editor somewhere. */
  async goTo(line: number, column = 1): Promise<void> {
    await this.page.keyboard.press('Control+g');
    await this.input.fill(`:${line}:${column}`);
    await this.input.press('Enter');
    await this.page.locator('.editor-group-container.active .monaco-editor.focused').waitFor();
    await this.page.locator('.statusbar-item', { hasText: `Ln ${line}, Col ${column}` }).waitFor();
  }

  /** Replaces a line of the open editor, and nothing else. */
  async replaceLine(line: number, text: string): Promise<void> {
    await this.goTo(line);
    await this.page.keyboard.press('End');
    await this.page.keyboard.press('Shift+Home');
    await this.page.keyboard.press('Shift+Home');
    await this.page.keyboard.type(text);
  }

  async save(): Promise<void> {
    await this.page.keyboard.press('Control+s');
    await this.page.locator('.tab.active:not(.dirty)').waitFor();
  }

  statusBar(): Locator {
    return this.page.locator('.statusbar-item[id="gpuemu.gpuemu.gpuemu.status"]');
  }

  /** Waits until the status bar says something. */
  async status(text: string | RegExp): Promise<void> {
    await this.statusBar().filter({ hasText: text }).waitFor();
  }

  async showProblems(): Promise<void> {
    if (!(await this.page.locator('.markers-panel').isVisible())) {
      await this.page.keyboard.press('Control+Shift+m');
    }
    await this.page.locator('.markers-panel').waitFor();
  }

  problems(text?: string | RegExp): Locator {
    const rows = this.page.locator('.markers-panel .monaco-list-row');
    return text === undefined ? rows : rows.filter({ hasText: text });
  }

  /** Waits until no problem is left. */
  async noProblems(): Promise<void> {
    await this.page.locator('.markers-panel').filter({ hasText: 'No problems have been detected' }).waitFor();
  }

  /** Opens the quick fixes at a place of the open editor, once there are some. */
  async quickFixes(line: number, column: number): Promise<Locator> {
    // Fixes are looked for when the cursor moves.
    await this.goTo(1);
    await this.goTo(line, column);
    await this.page.locator('.lightBulbWidget:visible, .codicon-gutter-lightbulb:visible').first().waitFor();
    await this.page.keyboard.press('Control+.');
    const menu = this.page.locator('.action-widget').first();
    await menu.waitFor();
    return menu;
  }

  tests(text: string | RegExp): Locator {
    return this.page.locator('.test-explorer .monaco-list-row').filter({ hasText: text });
  }

  /** What is in a webview. */
  webview(title: string): FrameLocator {
    return this.page.frameLocator('iframe.webview.ready').frameLocator(`iframe[title="${title}"]`);
  }

  notification(text: string | RegExp): Locator {
    return this.page.locator('.notifications-toasts .notification-list-item').filter({ hasText: text });
  }
}
