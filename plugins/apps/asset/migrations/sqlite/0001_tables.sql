-- Portfolios, what is booked in them, and a log of every confirmed table.
-- A database of an earlier version has portfolios already; they stay.

CREATE TABLE IF NOT EXISTS "Portfolio" (
    "id" INTEGER PRIMARY KEY AUTOINCREMENT,
    "name" TEXT NOT NULL
);

-- A name stands for one portfolio. Later ones of the same name get their number added.
UPDATE "Portfolio" SET "name" = "name" || ' (' || "id" || ')'
WHERE "id" NOT IN (SELECT min("id") FROM "Portfolio" GROUP BY "name");

CREATE UNIQUE INDEX IF NOT EXISTS "Portfolio_name_key" ON "Portfolio" ("name");

CREATE TABLE "Operation" (
    "id" INTEGER PRIMARY KEY AUTOINCREMENT,
    "ticker" TEXT NOT NULL,
    "name" TEXT NOT NULL,
    "action" TEXT NOT NULL CHECK ("action" IN ('buy', 'sell')),
    "quantity" REAL NOT NULL CHECK ("quantity" > 0),
    "price" REAL NOT NULL CHECK ("price" >= 0),
    "currency" TEXT NOT NULL,
    "tradedAt" TEXT NOT NULL,
    "memo" TEXT,
    "riskCategory" TEXT NOT NULL,
    "portfolioId" INTEGER NOT NULL REFERENCES "Portfolio" ("id"),
    "createdAt" TEXT NOT NULL
);

CREATE INDEX "Operation_portfolioId_idx" ON "Operation" ("portfolioId");

CREATE TABLE "Holding" (
    "id" INTEGER PRIMARY KEY AUTOINCREMENT,
    "ticker" TEXT NOT NULL,
    "name" TEXT NOT NULL,
    "quantity" REAL NOT NULL CHECK ("quantity" > 0),
    "costPrice" REAL NOT NULL CHECK ("costPrice" >= 0),
    "currency" TEXT NOT NULL,
    "riskCategory" TEXT NOT NULL,
    "portfolioId" INTEGER NOT NULL REFERENCES "Portfolio" ("id"),
    "createdAt" TEXT NOT NULL
);

CREATE INDEX "Holding_portfolioId_idx" ON "Holding" ("portfolioId");

CREATE TABLE "OperationLog" (
    "id" INTEGER PRIMARY KEY AUTOINCREMENT,
    "action" TEXT NOT NULL,
    "threadId" TEXT NOT NULL,
    "portfolioId" INTEGER NOT NULL REFERENCES "Portfolio" ("id"),
    "riskCategory" TEXT NOT NULL,
    "rows" TEXT NOT NULL,
    "createdAt" TEXT NOT NULL
);
