# SPDX-License-Identifier: Apache-2.0
"""transformers.Trainer on a tiny GPT-2 with random weights."""

import argparse
import tempfile

import torch
from torch.utils.data import Dataset
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments


class Tokens(Dataset):
    def __init__(self, size):
        self.size = size

    def __len__(self):
        return self.size

    def __getitem__(self, index):
        generator = torch.Generator().manual_seed(index)
        ids = torch.randint(0, 200, (32,), generator=generator)
        return {"input_ids": ids, "labels": ids}


class TinyGPT(GPT2LMHeadModel):
    def forward(self, input_ids, labels=None, **kwargs):
        return super().forward(input_ids=input_ids, labels=labels, **kwargs)


def data_collator(features):
    return {key: torch.stack([f[key] for f in features]) for key in features[0]}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=1000)
    parser.add_argument("--workers", type=int, default=0)
    args = parser.parse_args()
    config = GPT2Config(
        vocab_size=200,
        n_positions=64,
        n_embd=48,
        n_layer=2,
        n_head=2,
        bos_token_id=0,
        eos_token_id=0,
    )
    model = TinyGPT(config)
    with tempfile.TemporaryDirectory() as folder:
        training_args = TrainingArguments(
            output_dir=folder,
            max_steps=args.steps,
            per_device_train_batch_size=4,
            dataloader_num_workers=args.workers,
            logging_steps=50,
            eval_strategy="steps",
            eval_steps=300,
            save_steps=300,
            save_total_limit=1,
            report_to=[],
            use_cpu=True,
            disable_tqdm=True,
        )
        trainer = Trainer(
            model=model,
            args=training_args,
            train_dataset=Tokens(4096),
            eval_dataset=Tokens(64),
            data_collator=data_collator,
        )
        trainer.train()


if __name__ == "__main__":
    main()
