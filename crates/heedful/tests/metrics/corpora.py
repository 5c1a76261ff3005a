"""The sentences of the goldens. All are invented; each one covers a rule that scores depend on."""

import random

# Punctuation, numbers, entities, abbreviations, quotation marks: 13a and Tercom treat them differently.
ENGLISH = [
    ("The grey cat sat on the warm mat.", "The gray cat sat on a warm mat.", "A grey cat was sitting on the mat."),
    ("He paid $1,234.50 (about 1.100,-- euros) for it!", "He paid $1,234.50 (some 1.100 euros) for it.",
     "It cost him $1234.50 -- about 1,100 euros!"),
    ("It's John's dog's 3rd bone, isn't it?", "It is John's dog's third bone, isn't it?", "That's the 3rd bone of John's dog."),
    ("Tom &amp; Jerry said &quot;a &lt; b &gt; c&quot; &amp;lt; &apos;", "Tom & Jerry said \"a < b > c\" < '",
     "Tom and Jerry said: a &lt; b."),
    ("See http://example.org/a-b_c?d=e&f=g#h, e.g. p.5-7.", "See http://example.org/a-b_c?d=e&f=g, i.e. pp. 5-7.",
     "Look at example.org/a-b_c, p.5-7"),
    ("state-of-the-art 5-year-old 1990-2000 -5 --", "state of the art 5 year old 1990 - 2000 -5 -", "5-year-olds 1990--2000"),
    ("...wait... what?! ,,5 .,6 a.,7 8.,b 9,. ..", "... wait ... what ?! , 5 . 6 a. 7 8. b 9 . .", "wait.. what.,7"),
    ("[a]{b}|c|~d^e_f`g\\h/i=j+k*l%m@n<o>p;q:r", "[a] {b} |c| ~d ^e _f `g \\h /i =j +k *l %m @n <o> p; q: r", "a b c"),
    ("THE QUICK BROWN FOX", "The quick brown fox", "the Quick brown FOX jumps"),
    ("yes", "yes", "no"),
    ("no", "yes", "yes"),
    ("a b c", "a b c", "a b"),
    ("a b c d e f g h", "h g f e d c b a", "e f g h a b c d"),
    ("the the the the the the the", "the cat is on the mat", "there is a cat on the mat"),
    ("1.5 million people, 2.5% of the total.", "1.5 million people (2.5 % of all).", "About 1.5m people."),
    ("Version 2.6.0, released in 2019.", "Version 2.6.0 was released in 2019.", "Released 2019: version 2.6"),
    ("(hi) \"there\" 'you' [all] -and- *more*", "hi there you all and more", "(hi) there, \"you\" all"),
    ("I do not know what the weather will be like tomorrow in the mountains",
     "What the weather will be like in the mountains tomorrow I do not know",
     "I don't know what weather there will be in the mountains tomorrow"),
]

GERMAN = [
    ("Der große Hund läuft über die Straße.", "Ein großer Hund rennt über die Straße."),
    ("Zwei Männer in roten Jacken reparieren ein Dach.", "Zwei Männer in Rot reparieren gerade ein Dach."),
    ("Das kostet 3.499,99 € – oder etwas mehr …", "Es kostet 3.499,99 €, vielleicht etwas mehr."),
    ("„Ja“, sagte sie, „das weiß ich!“", "\"Ja\", sagte sie, \"das weiß ich.\""),
    ("ÄRGERLICH: ÜBER ÖL UND STRAẞE", "Ärgerlich: über Öl und Straße"),
    ("Am 3. Oktober 1990 um 0:00 Uhr war's so weit.", "Am 3. Oktober 1990, 0 Uhr, war es soweit."),
    ("Donaudampfschifffahrtsgesellschaft", "Die Donaudampfschifffahrtsgesellschaften"),
    ("Eine Frau liest ein Buch", "Eine Frau liest ein Buch"),
]

# Scripts with and without spaces, full-width forms, combining marks, right-to-left text, non-ASCII digits.
SCRIPTS = [
    ("我喜欢在公园里散步,你呢?", "我喜欢在公园散步,你呢?", "我很爱去公园里散步。你呢?"),
    ("一套自动驾驶解决方案,价格为3.5万元(含税)。", "一套自动驾驶的解决方案,价格是3.5万元。", "一个自动驾驶方案:3.5万元"),
    ("“你好”——他说……《书》、和world peace!", "“你好!”他说,《书》和world peace。", "他说:‘你好’……"),
    ("㐀㐁 𠀀𠀁 豈更 ㈠㈡ ㍉ ⺀⻀ ⼀ ㇀ ㄅㄆ ︐︰ A1", "㐀㐂 𠀀𠀂 豈车 ㈠㈢ ㍊ ⺀⻁ ⼁ ㇁ ㄅㄇ ︑︰ A1", "㐀 𠀀 豈"),
    ("これは日本語の文です。カタカナもあります!", "これは日本の文章です。カタカナがあります。", "日本語の文です、カタカナも・ある"),
    ("ひらがな", "ひらがなだけ", "カタカナ"),
    ("「今日」は3時に、ホテルへ。ㇰㇱ", "『今日』は3時にホテルへ。ㇰㇲ", "今日、三時にホテルへ"),
    ("나는 오늘 학교에 갔다.", "나는 오늘 학교에 가지 않았다.", "오늘 나는 학교에 갔어요."),
    ("ذهبتُ إلى السوق، واشتريتُ ٣٫٥ كيلو تفاح؟", "ذهبت إلى السوق واشتريت ٣٫٥ كيلو من التفاح.", "إلى السوق ذهبت؛ تفاح"),
    ("שלום, מה שלומך היום?", "שלום! מה שלומך?", "מה נשמע היום?"),
    ("मैं कल दिल्ली जाऊँगा। क्या आप आएँगे?", "मैं कल दिल्ली जा रहा हूँ। आप आएँगे?", "कल मैं दिल्ली जाऊँगा॥"),
    ("Он сказал: «Не знаю, 5-й или 6-й?»", "Он сказал: «Не знаю — 5-й, 6-й?»", "«Не знаю», — сказал он."),
    ("Ο ΟΔΥΣΣΕΥΣ είπε· τι; ΟΔΟΣ.", "Ο Οδυσσεύς είπε: τι; οδός", "ο οδυσσευς ειπε"),
    ("İstanbul'da ILIK çay içtim.", "istanbul'da ılık çay içtim", "İstanbul'da çay içtim!"),
    ("ฉันรักแมว ๑๒๓", "ฉันรักหมา ๑๒๓", "แมวรักฉัน"),
    ("I ❤️ 🍕🍕 and 👩‍👩‍👧 :-) → ½ + ² = Ⅳ™", "I ❤️ 🍕 and 👩‍👧 :) ⇒ ½ + ² = Ⅳ®", "❤ 🍕, 👩‍👩‍👧!"),
    ("café naïve e\u0301te\u0301 ﬁn", "cafe\u0301 naive été fin", "café été"),
    ("¿Qué? ¡No! «Sí»… 1ª 2º §3 ¶4 ±5 £6 ¢7 10°", "¿Qué…? ¡No! Sí. 1ª 2º § 3 ¶ 4 ±5 £6 ¢7 10 °", "Qué no sí"),
]

# Empty and almost empty text, white space of every kind, and text that only programs write.
ODD = [
    ("", ""),
    ("", "something was expected"),
    ("nothing was expected", ""),
    (" ", "\t"),
    (".", "."),
    (".5", ",5 ."),
    ("5.", "5,"),
    ("a", "b"),
    ("a\u00a0b\u3000c\u2003d\u200be\u0085f", "a b c d e f"),
    ("x\u001cy\u001dz\u001ew\u001fv", "x y z w v"),
    ("trailing  spaces \t ", "trailing spaces"),
    ("  leading spaces", "leading spaces "),
    ("windows line\r", "windows line"),
    ("a<skipped>b hyphen-\nated\nlines\n-dashed", "ab hyphenated lines dashed"),
    ("'s 's it's 's", "'s it 's's"),
    ("&amp;amp; &amp;quot; &amp;gt", "& \" >"),
    ("\ufeffmark", "mark"),
    ("same in both", "same in both"),
    ("\u2001\u2010\u2190\u2a6d\u2a6e\u2fdf\u2fe0\uffef\ufff0", "\u2010 \u2190 \u2a6d \u2a6e \u2fdf \u2fe0"),
]


def moved(words, generator, moves, longest):
    """Moves phrases, which TER's search has to find again."""
    words = list(words)
    for _ in range(moves):
        length = generator.randint(1, min(longest, len(words) - 1))
        start = generator.randrange(len(words) - length + 1)
        phrase = words[start:start + length]
        del words[start:start + length]
        place = generator.randrange(len(words) + 1)
        words[place:place] = phrase
    return words


def noisy(words, generator, share, vocabulary):
    out = []
    for word in words:
        draw = generator.random()
        if draw < share:
            out.append(generator.choice(vocabulary))
        elif draw < 1.5 * share:
            continue
        elif draw < 2 * share:
            out += [word, generator.choice(vocabulary)]
        else:
            out.append(word)
    return out


def long_segments():
    """Segments that reach the limits of beams, moves and trials, and extreme length ratios."""
    generator = random.Random(7)
    large = [f"w{i}" for i in range(400)]
    small = ["a", "b", "c", "d,", "E."]
    pairs = []
    for length, vocabulary, moves, longest, share in [
        (12, large, 2, 4, 0.0), (30, large, 3, 12, 0.1), (60, large, 5, 15, 0.05), (120, large, 4, 70, 0.1),
        (90, large, 8, 10, 0.3), (25, small, 3, 6, 0.1), (60, small, 6, 10, 0.1), (110, small, 4, 30, 0.2),
        (40, large, 10, 5, 0.0), (16, small, 2, 5, 0.2), (70, large, 1, 69, 0.0), (20, small, 4, 9, 0.0),
    ]:
        reference = [generator.choice(vocabulary) for _ in range(length)]
        pairs.append((noisy(moved(reference, generator, moves, longest), generator, share, vocabulary), reference))
    pairs += [
        (["x"], large[:70]), (large[:70], ["w3"]), (["w1", "w69"], large[:120]), (large[60:70] + large[:60], large[:70]),
        (large[55:110] + large[:55], large[:110]), (["a", "b"] * 30, ["b", "a"] * 28), (large[:45][::-1], large[:45]),
    ]
    return [(" ".join(hypothesis), " ".join(reference)) for hypothesis, reference in pairs]


def corpora():
    """Name → (hypotheses, references), references[r][sentence]; None where a translation has a gap."""
    def split(rows):
        hypotheses, *references = (list(column) for column in zip(*rows))
        return hypotheses, references

    gaps = [(hypothesis, first, second if i % 3 else None, None if i % 4 else first.upper())
            for i, (hypothesis, first, second) in enumerate(ENGLISH[:10])]
    return {
        "english": split(ENGLISH),
        "german": split(GERMAN),
        "scripts": split(SCRIPTS),
        "odd": split(ODD),
        "long": split(long_segments()),
        "gaps": split(gaps),
        "hopeless": (["x y z"], [["a b c d"]]),
        "empty": ([""], [["a b c d"]]),
    }
