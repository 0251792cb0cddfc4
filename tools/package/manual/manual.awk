# manual.awk: writes a manual page. What a page says twice is written once: the README has the sections, headers the operators.
#
#     awk -v root=SOURCES -v version=0.1.0 -f manual.awk hetucc.1.in > hetucc.1
#
# The page is roff, but for lines that stand for other text:
#     @readme TITLE      what README.md has under this heading
#     @comment FILE      the comment that FILE begins with, as it stands
#     @operators FILE    the operators that the header FILE declares, each with what the header says of it
# A heading or a file that is not there ends the work with status 1, and so does a Markdown that this does not know.

function fail(text) { print "manual.awk: " FILENAME ":" FNR ": " text > "/dev/stderr"; failed = 1; exit 1 }

# Text as roff takes it; a first character that would make it a request is protected.
function plain(text)
{
    gsub(/\\/, "\\e", text)
    gsub(/-/, "\\-", text)
    gsub(/`/, "\\(ga", text)
    gsub(/\^/, "\\(ha", text)
    gsub(/~/, "\\(ti", text)
    return text
}
function code(text) { text = plain(text); gsub(/'/, "\\(aq", text); return text }
function put(text) { print (text ~ /^[.']/ ? "\\&" : "") text }

# Markdown within a paragraph: `code` is bold, *word* italic.
function spans(text,    count, part, i, out)
{
    count = split(text, part, "`")
    if (count % 2 == 0)
        fail("a ` without its second one: " text)
    for (i = 1; i <= count; i++)
        out = out (i % 2 ? slanted(plain(part[i])) : "\\fB" code(part[i]) "\\fR")
    return out
}
function slanted(text)
{
    while (match(text, /(^|[ (])[*][a-z]+[*]/)) {
        lead = substr(text, RSTART, 1) == "*" ? 0 : 1
        text = substr(text, 1, RSTART + lead - 1) "\\fI" substr(text, RSTART + lead + 1, RLENGTH - lead - 2) "\\fR" substr(text, RSTART + RLENGTH)
    }
    return text
}

# ---- sections of the README ----

function begin_paragraph() { if (!fresh) print ".PP"; fresh = 0 }
function end_paragraph() { if (paragraph != "") { begin_paragraph(); put(spans(paragraph)) }; paragraph = "" }
function begin_code() { end_paragraph(); begin_paragraph(); print ".RS 2\n.nf" }
function end_code() { print ".fi\n.RE"; fresh = 0 }

# A row of a table: what stands first is the term, the rest says what it means.
function row(text,    count, cell, i, rest)
{
    gsub(/\\[|]/, "\001", text)
    sub(/^[|] */, "", text)
    sub(/ *[|] *$/, "", text)
    count = split(text, cell, / *[|] */)
    for (i = 2; i <= count; i++)
        rest = rest (i > 2 ? ": " : "") cell[i]
    gsub("\001", "|", cell[1])
    gsub("\001", "|", rest)
    print ".TP"
    put(spans(cell[1]))
    put(rest == "" ? "\\&" : spans(rest))
    fresh = 0
}

function readme(title,    file, text, level, depth, found, fenced, indented, blank)
{
    file = root "/README.md"
    fresh = 1
    while ((getline text < file) > 0) {
        if (text ~ /^```/) {
            fenced = !fenced
            if (found) { if (fenced) begin_code(); else end_code() }
            continue
        }
        if (!fenced && match(text, /^#+ /)) {
            depth = RLENGTH - 1
            if (found && depth <= level)
                break
            if (found) {
                end_paragraph()
                print ".SS " plain(substr(text, RLENGTH + 1))
                fresh = 1
            } else if (substr(text, RLENGTH + 1) == title) {
                found = 1
                level = depth
            }
            continue
        }
        if (!found)
            continue
        if (fenced) {
            put(code(text))
            continue
        }
        if (text ~ /^    / && (indented || paragraph == "")) {
            if (!indented)
                begin_code()
            else
                for (; blank; blank--)
                    print ""
            blank = 0
            indented = 1
            put(code(substr(text, 5)))
            continue
        }
        if (indented && text == "") {
            blank++
            continue
        }
        if (indented)
            end_code()
        indented = blank = 0
        if (text ~ /^[|]/) {
            end_paragraph()
            if (text ~ /^[|][-|: ]+$/)
                headed = 1
            else if (headed)
                row(text)
        } else {
            headed = 0
            if (text == "")
                end_paragraph()
            else
                paragraph = paragraph (paragraph == "" ? "" : " ") text
        }
    }
    if (indented)
        end_code()
    end_paragraph()
    close(file)
    if (!found)
        fail("README.md has no section \"" title "\"")
}

# ---- the comment of a header ----

function comment(name,    file, text, inside)
{
    file = root "/" name
    print ".nf"
    while ((getline text < file) > 0) {
        if (text ~ /^\/\* clang-format/)
            continue
        if (text ~ /^\/\*/)
            inside = 1
        if (!inside)
            continue
        if (text ~ /^ \*\//)
            break
        sub(/^\/\* ?/, "", text)
        sub(/^ \* ?/, "", text)
        put(code(text))
    }
    print ".fi"
    close(file)
    if (!inside)
        fail(name " begins with no comment")
}

# ---- operators ----

# The forms behind friendlier functions, gradients, and what optimizers call.
function is_hidden(name) { return name ~ /_(at|over|with|stats|backward|gradient|merge|update|rule)$/ }

# What is known of an operator, or of the form behind it.
function said(name,    form, i, all)
{
    split(" _at _over _with", form, " ")
    if (name in says)
        return says[name]
    for (i = 1; i <= 3; i++)
        if ((name form[i]) in says)
            return says[name form[i]]
    return ""
}
function rule_of(name) { return name in rules ? rules[name] : (name "_at") in rules ? rules[name "_at"] : "" }

function entry(name, shown, defaults,    text, rule)
{
    print ".TP"
    print "\\fB" code(shown) "\\fR"
    text = said(name)
    rule = rule_of(name)
    if (text != "" || rule defaults == "")
        put(text == "" ? "\\&" : gsub(/`/, "`", text) % 2 ? plain(text) : spans(text))
    if (rule != "")
        print (text == "" ? "" : ".br\n") "Rule: \\fB" plain(rule) "\\fR"
    if (defaults != "")
        print (text == "" && rule == "" ? "" : ".br\n") "Where nothing else is said: " plain(defaults) "."
    listed++
}

# Reads a header: comments and rules of what it declares, and in which order.
function declared(name, shown, defaults)
{
    if (note != "")
        says[name] = note
    if (rule != "")
        rules[name] = rule
    note = rule = ""
    if (is_hidden(name) || (name in order))
        return
    order[name] = ++count
    names[count] = name
    forms[count] = shown
    given[count] = defaults
}

function operators(file_name,    file, text, name, inside, more, defaults, i)
{
    file = root "/" file_name
    split("", says); split("", rules); split("", order)
    count = listed = 0
    note = rule = ""
    while ((getline text < file) > 0) {
        while (text ~ /^#(define|pragma).*\\$/ && (getline more < file) > 0) {
            sub(/ *\\$/, "", text)
            sub(/^ */, " ", more)
            text = text more
        }
        if (text ~ /^\/\* ----/) {
            note = ""
        } else if (text ~ /^\/\*/ || inside) {
            if (!inside)
                note = ""
            inside = text !~ /\*\/$/
            sub(/^\/\* ?/, "", text)
            sub(/^ \* ?/, "", text)
            sub(/ *\*\/$/, "", text)
            note = note (note == "" ? "" : " ") text
        } else if (text ~ /^#pragma hspmd op /) {
            rule = text
            sub(/^#pragma hspmd op +/, "", rule)
        } else if (match(text, /^(static inline )?(ht_tensor|int|ht_sorted|ht_optimizer|double) ht_[a-z0-9_]+[(][^)]*[)]/)) {
            shown = substr(text, 1, RLENGTH)
            sub(/^static inline /, "", shown)
            name = shown
            sub(/[(].*/, "", name)
            sub(/.* /, "", name)
            declared(name, shown, "")
        } else if (match(text, /^#define ht_[a-z0-9_]+[(][^)]*[)]/)) {
            shown = substr(text, 9, RLENGTH - 8)
            name = shown
            sub(/[(].*/, "", name)
            defaults = ""
            if (match(text, /_options[)][{].* __VA_OPT__/))
                defaults = substr(text, RSTART + 10, RLENGTH - 21)
            redefined = name in order
            declared(name, shown, defaults)
            if (redefined) {
                forms[order[name]] = shown
                given[order[name]] = defaults
            }
        } else if (text ~ /^[^ }]/ && text !~ /^(typedef|static inline|#)/) {
            note = ""
        }
    }
    close(file)
    for (i = 1; i <= count; i++)
        entry(names[i], forms[i], given[i])
    if (!listed)
        fail(file_name " declares no operator")
}

/^@/ {
    word = $1
    rest = substr($0, length(word) + 2)
    if (word == "@readme")
        readme(rest)
    else if (word == "@comment")
        comment(rest)
    else if (word == "@operators")
        operators(rest)
    else
        fail("nothing stands for " word)
    next
}
{
    gsub(/@VERSION@/, version)
    print
}
END { exit failed }
