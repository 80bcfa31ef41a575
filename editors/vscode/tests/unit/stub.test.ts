import { test } from "node:test";

test("x", () => {});
