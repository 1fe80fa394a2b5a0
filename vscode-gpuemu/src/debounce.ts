// Saves that come close together are one.

export class Debounce<Item> {
  private timer: NodeJS.Timeout | undefined;
  private readonly waiting = new Set<Item>();

  constructor(
    private readonly milliseconds: () => number,
    private readonly act: (items: Item[]) => void,
  ) {}

  add(item: Item): void {
    this.waiting.add(item);
    clearTimeout(this.timer);
    this.timer = setTimeout(() => {
      const items = [...this.waiting];
      this.waiting.clear();
      this.act(items);
    }, this.milliseconds());
  }

  dispose(): void {
    clearTimeout(this.timer);
    this.waiting.clear();
  }
}
