// Keeps the highlighter from walking through the document on its own. It reads this when loaded.
Object.assign(globalThis, { Prism: { manual: true, disableWorkerMessageHandler: true } });

export {};
