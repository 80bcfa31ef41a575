// Colours for code: comments, strings, numbers, words of the language. A line at a time, so that any part of a
// file of any length can be shown without what is before it.

const words = {
  rust: "as async await break const continue crate dyn else enum extern false fn for if impl in let loop match mod move mut pub ref return self Self static struct super trait true type unsafe use where while",
  python: "and as assert async await break class continue def del elif else except False finally for from global if import in is lambda None nonlocal not or pass raise return True try while with yield",
  script: "async await break case catch class const continue default delete do else export extends false finally for from function if import in instanceof interface let new null of return static super switch this throw true try type typeof undefined var void while yield",
  go: "break case chan const continue default defer else false for func go goto if import interface map nil package range return select struct switch true type var",
  java: "abstract boolean break case catch class const continue default do double else enum extends false final finally float for if implements import instanceof int interface long new null package private protected public return static super switch this throw throws true try void while",
  c: "auto bool break case char class const continue default delete do double else enum extern false float for if include int long namespace new nullptr public private return short signed sizeof static struct switch template this true typedef union unsigned using virtual void volatile while",
  ruby: "alias and begin break case class def do else elsif end ensure false for if in module next nil not or redo rescue retry return self super then true undef unless until when while yield",
  shell: "case do done elif else esac export fi for function if in local return then until while",
  sql: "ADD ALTER AND AS BY CREATE DELETE DESC DISTINCT DROP FROM GROUP HAVING IN INDEX INNER INSERT INTO IS JOIN KEY LEFT LIMIT NOT NULL ON OR ORDER PRIMARY SELECT SET TABLE UNION UPDATE VALUES WHERE",
  json: "true false null",
  toml: "true false",
  yaml: "true false null",
  css: "",
};

const lineComment = {
  rust: "//", script: "//", go: "//", java: "//", c: "//", python: "#", ruby: "#", shell: "#", toml: "#", yaml: "#", sql: "--",
};

const keywords = Object.fromEntries(Object.entries(words).map(([name, list]) => [name, new Set(list.split(" "))]));

// Results of file readers have line numbers in front: "  12→", "  12\t", "12|".
const numbered = /^(\s*\d+(?:→|\t|\| ?))/;

/** Cuts a line into pieces: [class or "", text]. */
export function pieces(line, language) {
  if (language === "diff") return [[diffClass(line), line]];
  const set = keywords[language];
  if (!set || line.length > 4000) return [["", line]];
  const out = [];
  const number = numbered.exec(line);
  if (number) out.push(["no", number[1]]);
  const token = /("(?:[^"\\]|\\.)*"?|'(?:[^'\\]|\\.)*'|`(?:[^`\\]|\\.)*`?)|(\b\d[\w.]*\b)|([A-Za-z_]\w*)|(\/\*.*?(?:\*\/|$))|([^\w"'`/#-]+|.)/gs;
  const comment = lineComment[language];
  token.lastIndex = number ? number[1].length : 0;
  for (let found = token.exec(line); found; found = token.exec(line)) {
    if (comment && line.startsWith(comment, found.index)) {
      out.push(["co", line.slice(found.index)]);
      return out;
    }
    const [text, string, digits, word, block] = found;
    if (string) out.push([isKey(line, token.lastIndex, language) ? "ke" : "st", text]);
    else if (digits) out.push(["nu", text]);
    else if (word) out.push([set.has(word) || (language === "sql" && set.has(word.toUpperCase())) ? "kw" : "", text]);
    else out.push([block ? "co" : "", text]);
  }
  return out;
}

const isKey = (line, at, language) => language === "json" && /^\s*:/.test(line.slice(at));

function diffClass(line) {
  if (line.startsWith("+++") || line.startsWith("---") || line.startsWith("@@") || line.startsWith("*** ")) return "kw";
  if (line.startsWith("+")) return "add";
  return line.startsWith("-") ? "del" : "";
}
