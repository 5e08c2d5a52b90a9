// The core of the highlighter has the types of the whole package.
declare module "prismjs/components/prism-core" {
  import Prism from "prismjs";
  export default Prism;
}
declare module "prismjs/components/prism-sql";
