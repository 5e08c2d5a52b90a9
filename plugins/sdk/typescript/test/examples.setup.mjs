// Writes the examples of the documentation as modules, before tests import them.
import { writeExamples } from "../scripts/examples.mjs";

export default writeExamples;
