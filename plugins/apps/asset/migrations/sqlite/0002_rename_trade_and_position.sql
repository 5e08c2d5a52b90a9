-- "Trade" and "Position" are called "Operation" and "Holding" now. Their rows keep their ids.
-- A database that never had the old tables gets them empty for a moment.

CREATE TABLE IF NOT EXISTS "Trade" (
    "id" INTEGER PRIMARY KEY,
    "ticker" TEXT,
    "name" TEXT,
    "action" TEXT,
    "quantity" REAL,
    "price" REAL,
    "currency" TEXT,
    "tradedAt" TEXT,
    "memo" TEXT,
    "riskCategory" TEXT,
    "portfolioId" INTEGER,
    "createdAt" TEXT
);

CREATE TABLE IF NOT EXISTS "Position" (
    "id" INTEGER PRIMARY KEY,
    "ticker" TEXT,
    "name" TEXT,
    "quantity" REAL,
    "costPrice" REAL,
    "currency" TEXT,
    "riskCategory" TEXT,
    "portfolioId" INTEGER,
    "createdAt" TEXT
);

-- Rows of portfolios that are not there get one.
INSERT INTO "Portfolio" ("id", "name")
SELECT DISTINCT old."portfolioId", 'Portfolio ' || old."portfolioId"
FROM (
    SELECT "portfolioId" FROM "Trade" UNION SELECT "portfolioId" FROM "Position"
) AS old
WHERE old."portfolioId" IS NOT NULL
    AND old."portfolioId" NOT IN (SELECT "id" FROM "Portfolio");

INSERT INTO "Operation" ("id", "ticker", "name", "action", "quantity", "price", "currency",
    "tradedAt", "memo", "riskCategory", "portfolioId", "createdAt")
SELECT "id", "ticker", COALESCE("name", ''), "action", "quantity", "price",
    COALESCE("currency", ''), COALESCE("tradedAt", date('now')), "memo",
    COALESCE("riskCategory", ''), "portfolioId", COALESCE("createdAt", (strftime('%Y-%m-%dT%H:%M:%SZ', 'now')))
FROM "Trade";

INSERT INTO "Holding" ("id", "ticker", "name", "quantity", "costPrice", "currency",
    "riskCategory", "portfolioId", "createdAt")
SELECT "id", "ticker", COALESCE("name", ''), "quantity", "costPrice",
    COALESCE("currency", ''), COALESCE("riskCategory", ''), "portfolioId",
    COALESCE("createdAt", (strftime('%Y-%m-%dT%H:%M:%SZ', 'now')))
FROM "Position";

DROP TABLE "Trade";

DROP TABLE "Position";
