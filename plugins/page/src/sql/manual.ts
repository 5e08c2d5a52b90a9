// Keeps the highlighter from processing the document by itself. It reads this when it is loaded.
Object.assign(globalThis, { Prism: { manual: true, disableWorkerMessageHandler: true } });

export {};
