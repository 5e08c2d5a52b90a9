-- "Trade" and "Position" are called "Operation" and "Holding" now. Their rows keep their ids.
-- A database that never had the old tables gets them empty for a moment.

CREATE TABLE IF NOT EXISTS "Trade" (
    "id" BIGINT PRIMARY KEY,
    "ticker" TEXT,
    "name" TEXT,
    "action" TEXT,
    "quantity" DOUBLE PRECISION,
    "price" DOUBLE PRECISION,
    "currency" TEXT,
    "tradedAt" DATE,
    "memo" TEXT,
    "riskCategory" TEXT,
    "portfolioId" BIGINT,
    "createdAt" TIMESTAMPTZ
);

CREATE TABLE IF NOT EXISTS "Position" (
    "id" BIGINT PRIMARY KEY,
    "ticker" TEXT,
    "name" TEXT,
    "quantity" DOUBLE PRECISION,
    "costPrice" DOUBLE PRECISION,
    "currency" TEXT,
    "riskCategory" TEXT,
    "portfolioId" BIGINT,
    "createdAt" TIMESTAMPTZ
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
    COALESCE("currency", ''), COALESCE("tradedAt", CURRENT_DATE), "memo",
    COALESCE("riskCategory", ''), "portfolioId", COALESCE("createdAt", now())
FROM "Trade";

INSERT INTO "Holding" ("id", "ticker", "name", "quantity", "costPrice", "currency",
    "riskCategory", "portfolioId", "createdAt")
SELECT "id", "ticker", COALESCE("name", ''), "quantity", "costPrice",
    COALESCE("currency", ''), COALESCE("riskCategory", ''), "portfolioId",
    COALESCE("createdAt", now())
FROM "Position";

DROP TABLE "Trade";

DROP TABLE "Position";

-- The next row gets the number after the largest that was taken over.
SELECT setval(pg_get_serial_sequence('"Portfolio"', 'id'), max("id")) FROM "Portfolio" HAVING max("id") IS NOT NULL;
SELECT setval(pg_get_serial_sequence('"Operation"', 'id'), max("id")) FROM "Operation" HAVING max("id") IS NOT NULL;
SELECT setval(pg_get_serial_sequence('"Holding"', 'id'), max("id")) FROM "Holding" HAVING max("id") IS NOT NULL;
