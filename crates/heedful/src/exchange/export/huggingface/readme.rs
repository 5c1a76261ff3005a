//! The `README.md` of an export: how to run it.

use super::super::loaded_model::LoadedModel;

/// For a translator.
pub(super) fn translator(original: &LoadedModel) -> String {
    // MarianTokenizer handles both sides.
    let has_second =
        original.pieces.is_none() && original.tokenizers.source.names() != original.tokenizers.target.names();
    let target = if has_second { "AutoTokenizer.from_pretrained(\"target\")" } else { "tokenizer" };
    format!(
        "# A translator\n\nTrained or imported, and exported, with heedful.\n\n```python\n\
         from transformers import AutoModelForSeq2SeqLM, AutoTokenizer\n\n\
         model, tokenizer = AutoModelForSeq2SeqLM.from_pretrained(\".\"), AutoTokenizer.from_pretrained(\".\")\n\
         target = {target}\n\
         texts = tokenizer([\"a text\"], return_tensors=\"pt\", padding=True)\n\
         print(target.batch_decode(model.generate(**texts), skip_special_tokens=True))\n```\n"
    )
}

/// For a language model.
pub(super) const LANGUAGE: &str = r#"# A language model

Trained or imported, and exported, with heedful.

```python
from transformers import AutoModelForCausalLM, AutoTokenizer

model, tokenizer = AutoModelForCausalLM.from_pretrained("."), AutoTokenizer.from_pretrained(".")
prompt = tokenizer("a prompt", return_tensors="pt")
print(tokenizer.decode(model.generate(**prompt, max_new_tokens=50)[0], skip_special_tokens=True))
```
"#;

/// For a masked language model.
pub(super) const MASKED: &str = r#"# A masked language model

Trained or imported, and exported, with heedful.

```python
from transformers import AutoModelForMaskedLM, AutoTokenizer

model, tokenizer = AutoModelForMaskedLM.from_pretrained("."), AutoTokenizer.from_pretrained(".")
text = tokenizer("a text of several words", return_tensors="pt")
text.input_ids[0, 2] = tokenizer.mask_token_id  # The name "[MASK]" in a text is plain text.
print(tokenizer.decode(model(**text).logits[0, 2].argmax()))
```
"#;
