"""Folder of the ALBERT in the package rxnmapper, with a tokenizer, and a folder of ten reactions that the model reads.

    pip install --no-deps rxnmapper==0.4.3
    python docs/studies/albert.py albert reactions

The package has weights and vocabulary, and splits reactions (SMILES) into tokens by a regular expression of its own.
"""

import sys
from importlib.util import find_spec
from pathlib import Path
from shutil import copytree

from tokenizers import Regex, Tokenizer, models, pre_tokenizers, processors
from transformers import PreTrainedTokenizerFast

MODEL = "models/transformers/albert_heads_8_uspto_all_1310k"
ATOMS = r"\[[^\]]+]|Br?|Cl?|[NOSPFIbcnosp()\.=#\-+\\/:~@?*$]|>>?|%[0-9]{2}|[0-9]"  # rxnmapper/smiles_utils.py
REACTIONS = {
    "aspirin": "CC(=O)OC(C)=O.O=C(O)c1ccccc1O.O=S(=O)(O)O>>CC(=O)Oc1ccccc1C(=O)O",
    "benzocaine": "CCO.Nc1ccc(C(=O)O)cc1.O=S(=O)(O)O.O=C([O-])[O-].[Na+].[Na+]>>CCOC(=O)c1ccc(N)cc1",
    "biphenyl": "OB(O)c1ccccc1.COc1ccc(Br)cc1.O=C([O-])[O-].[K+].[K+].C1CCOC1>>COc1ccc(-c2ccccc2)cc1",
    "diels_alder": "C=CC(C)=C.O=C1C=CC(=O)N1c1ccccc1.Cc1ccccc1>>CC1=CCC2C(=O)N(c3ccccc3)C(=O)C2C1",
    "grignard": "C1CCOC1.C[Mg]Br.O=C(c1ccccc1)c1ccc(Cl)cc1.Cl>>CC(O)(c1ccccc1)c1ccc(Cl)cc1",
    "lidocaine": "CCNCC.Cc1cccc(C)c1NC(=O)CCl.Cc1ccccc1>>CCN(CC)CC(=O)Nc1c(C)cccc1C",
    "paracetamol": "CC(=O)OC(C)=O.Nc1ccc(O)cc1.CC(=O)O.O>>CC(=O)Nc1ccc(O)cc1",
    "peptide": "CC(C)(C)OC(=O)NCC(=O)O.COC(=O)C(N)Cc1ccccc1.CCN(CC)CC>>COC(=O)C(Cc1ccccc1)NC(=O)CNC(=O)OC(C)(C)C",
    "reduction": "COc1ccc(C(C)=O)cc1OC.CO.[BH4-].[Na+].O>>COc1ccc(C(C)O)cc1OC",
    "sulfonamide": "CC(=O)Nc1ccc(S(=O)(=O)Cl)cc1.Nc1ccccn1.c1ccncc1>>CC(=O)Nc1ccc(S(=O)(=O)Nc2ccccn2)cc1",
}


def write_model(folder: Path) -> None:
    """Write the model of the package with a tokenizer that the library transformers can read."""
    package = find_spec("rxnmapper")
    if package is None or package.origin is None:
        raise SystemExit("rxnmapper is not installed: pip install --no-deps rxnmapper==0.4.3")
    copytree(Path(package.origin).parent / MODEL, folder, dirs_exist_ok=True)
    words = {word: k for k, word in enumerate((folder / "vocab.txt").read_text().splitlines())}
    tokenizer = Tokenizer(models.WordLevel(words, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Split(Regex(ATOMS), "removed", invert=True)
    ends = [(name, words[name]) for name in ("[CLS]", "[SEP]")]
    tokenizer.post_processor = processors.TemplateProcessing(single="[CLS] $A [SEP]", special_tokens=ends)
    special = {"unk_token": "[UNK]", "cls_token": "[CLS]", "sep_token": "[SEP]", "pad_token": "[PAD]"}
    PreTrainedTokenizerFast(tokenizer_object=tokenizer, model_max_length=512, **special).save_pretrained(folder)


def write_reactions(folder: Path) -> None:
    """Write each of the reactions as a text file."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, reaction in REACTIONS.items():
        (folder / f"{name}.txt").write_text(reaction, encoding="utf-8")


if __name__ == "__main__":
    write_model(Path(sys.argv[1]))
    write_reactions(Path(sys.argv[2]))
