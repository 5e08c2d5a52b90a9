#!/usr/bin/env node
import { main } from "../build/cli.mjs";

process.exitCode = await main(process.argv.slice(2), process.cwd());
