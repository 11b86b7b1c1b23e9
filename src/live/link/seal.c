/* SPDX-License-Identifier: Apache-2.0 */
#include "live/link/seal.h"

#include "base/file.h"
#include "live/link/cryptolibrary.h"
#include "live/link/jobcert.h"

#include <errno.h>
#include <openssl/evp.h>
#include <string.h>

#define KEY_BYTES 32u
#define SIGNATURE_BYTES 64u
#define NKEY_SEED 18u /* first five bits of an NKey: the letter S */
#define NKEY_USER 20u /* U */

/* Of what is signed, so that a signature is valid for nothing else. */
#define PURPOSE "perftracker leader"

/* A field of bytes: its number and type, then its length. */
static const uint8_t head[] = { ((SEAL_FIELD << 3 | 2) & 0x7f) | 0x80, SEAL_FIELD >> 4,
				SIGNATURE_BYTES };

_Static_assert(sizeof(head) + SIGNATURE_BYTES == SEAL_BYTES, "head and signature");

struct crypto {
	__typeof__(EVP_PKEY_new_raw_private_key) *new_private;
	__typeof__(EVP_PKEY_new_raw_public_key) *new_public;
	__typeof__(EVP_PKEY_free) *key_free;
	__typeof__(EVP_MD_CTX_new) *context_new;
	__typeof__(EVP_MD_CTX_free) *context_free;
	__typeof__(EVP_DigestSignInit) *sign_init;
	__typeof__(EVP_DigestSign) *sign;
	__typeof__(EVP_DigestVerifyInit) *verify_init;
	__typeof__(EVP_DigestVerify) *verify;
};

struct seal {
	struct crypto crypto;
	EVP_PKEY *key;
};

static int crypto_open(struct crypto *ret, struct err *err)
{
	const struct symbol table[] = {
		{ &ret->new_private, "EVP_PKEY_new_raw_private_key" },
		{ &ret->new_public, "EVP_PKEY_new_raw_public_key" },
		{ &ret->key_free, "EVP_PKEY_free" },
		{ &ret->context_new, "EVP_MD_CTX_new" },
		{ &ret->context_free, "EVP_MD_CTX_free" },
		{ &ret->sign_init, "EVP_DigestSignInit" },
		{ &ret->sign, "EVP_DigestSign" },
		{ &ret->verify_init, "EVP_DigestVerifyInit" },
		{ &ret->verify, "EVP_DigestVerify" },
	};

	return cryptolibrary_open(table, ARRAY_SIZE(table), err);
}

/* --- keys --- */

static int seal_new(const uint8_t key[KEY_BYTES], bool private, struct seal **ret, struct err *err)
{
	struct seal *seal = calloc(1, sizeof(*seal));
	int r;

	if (seal == NULL)
		return err_set(err, ENOMEM, "out of memory");
	r = crypto_open(&seal->crypto, err);
	if (r == 0) {
		seal->key = (private ? seal->crypto.new_private : seal->crypto.new_public)(
			EVP_PKEY_ED25519, NULL, key, KEY_BYTES);
		if (seal->key == NULL)
			r = err_set(err, EINVAL, "libcrypto refuses the key of orders");
	}
	if (r < 0) {
		(void)seal_close(seal);
		return r;
	}
	*ret = seal;
	return 0;
}

struct seal *seal_close(struct seal *seal)
{
	if (seal != NULL && seal->key != NULL)
		seal->crypto.key_free(seal->key);
	free(seal);
	return NULL;
}

int seal_of_secret(const char *secret, struct seal **ret, struct err *err)
{
	uint8_t key[KEY_BYTES];
	int r = jobcert_digest(secret, PURPOSE, key, err);

	return r < 0 ? r : seal_new(key, true, ret, err);
}

/* Base 32 of RFC 4648 without padding. Returns the number of bytes, 0: other letters, or too many. */
static size_t decode(const char *text, uint8_t *ret, size_t max)
{
	static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
	uint32_t bits = 0;
	unsigned have = 0;
	size_t len = 0;

	for (; *text != '\0'; text++) {
		const char *at = strchr(letters, *text);

		if (at == NULL || len == max)
			return 0;
		bits = (bits << 5 | (uint32_t)(at - letters)) & 0xfff;
		have += 5;
		if (have < 8)
			continue;
		have -= 8;
		ret[len++] = (uint8_t)(bits >> have);
	}
	return have < 5 ? len : 0;
}

/* CRC-16 of XMODEM, which ends an NKey, low byte first. */
static uint16_t checksum(const uint8_t *bytes, size_t len)
{
	uint16_t ret = 0;

	for (size_t i = 0; i < len; i++) {
		ret ^= (uint16_t)(bytes[i] << 8);
		for (int bit = 0; bit < 8; bit++)
			ret = (uint16_t)(ret & 0x8000 ? ret << 1 ^ 0x1021 : ret << 1);
	}
	return ret;
}

/* head_len: bytes before the key. Returns whether it is whole. */
static bool read_nkey(const char *text, size_t head_len, uint8_t ret[])
{
	size_t len = head_len + KEY_BYTES;
	uint8_t bytes[2 + KEY_BYTES + 2 + 1];

	if (decode(text, bytes, sizeof(bytes)) != len + 2 ||
	    checksum(bytes, len) != (bytes[len] | bytes[len + 1] << 8))
		return false;
	memcpy(ret, bytes, len);
	return true;
}

int seal_of_seed_file(const char *path, struct seal **ret, struct err *err)
{
	uint8_t bytes[2 + KEY_BYTES];
	char line[128];
	int r = file_read_line(path, "the seed of an NKey", line, sizeof(line), err);

	if (r < 0)
		return r;
	/* Its second letter says of what kind; any will do. */
	if (!read_nkey(line, 2, bytes) || bytes[0] >> 3 != NKEY_SEED)
		return err_set(err, EINVAL, "%s: expected the seed of an NKey (SU...)", path);
	return seal_new(bytes + 2, true, ret, err);
}

int seal_of_public_key(const char *text, struct seal **ret, struct err *err)
{
	uint8_t bytes[1 + KEY_BYTES];

	if (!read_nkey(text, 1, bytes) || bytes[0] >> 3 != NKEY_USER)
		return err_set(err, EINVAL,
			       "expected the public key of an NKey (U and 55 letters or digits), "
			       "found '%.80s'",
			       text);
	return seal_new(bytes + 1, false, ret, err);
}

/* --- messages --- */

/* What is signed; the caller frees it. NULL: no memory. */
static uint8_t *signed_bytes(const char *subject, const uint8_t *message, size_t len,
			     size_t *ret_len)
{
	size_t subject_len = strlen(subject) + 1;
	uint8_t *ret = malloc(sizeof(PURPOSE) + subject_len + len);

	if (ret == NULL)
		return NULL;
	memcpy(ret, PURPOSE, sizeof(PURPOSE));
	memcpy(ret + sizeof(PURPOSE), subject, subject_len);
	memcpy(ret + sizeof(PURPOSE) + subject_len, message, len);
	*ret_len = sizeof(PURPOSE) + subject_len + len;
	return ret;
}

int seal_add(const struct seal *seal, const char *subject, uint8_t *message, size_t len)
{
	const struct crypto *crypto = &seal->crypto;
	size_t all_len = 0, signature_len = SIGNATURE_BYTES;
	_cleanup_free_ uint8_t *all = signed_bytes(subject, message, len, &all_len);
	EVP_MD_CTX *context = crypto->context_new();
	bool done = all != NULL && context != NULL &&
		    crypto->sign_init(context, NULL, NULL, NULL, seal->key) == 1 &&
		    crypto->sign(context, message + len + sizeof(head), &signature_len, all,
				 all_len) == 1;

	crypto->context_free(context);
	if (!done || signature_len != SIGNATURE_BYTES)
		return -EIO;
	memcpy(message + len, head, sizeof(head));
	return 0;
}

bool seal_is_valid(const struct seal *seal, const char *subject, const uint8_t *message, size_t len)
{
	const struct crypto *crypto = &seal->crypto;
	_cleanup_free_ uint8_t *all = NULL;
	EVP_MD_CTX *context;
	size_t all_len = 0;
	bool ret;

	if (len < SEAL_BYTES || memcmp(message + len - SEAL_BYTES, head, sizeof(head)) != 0)
		return false;
	all = signed_bytes(subject, message, len - SEAL_BYTES, &all_len);
	context = crypto->context_new();
	ret = all != NULL && context != NULL &&
	      crypto->verify_init(context, NULL, NULL, NULL, seal->key) == 1 &&
	      crypto->verify(context, message + len - SIGNATURE_BYTES, SIGNATURE_BYTES, all,
			     all_len) == 1;
	crypto->context_free(context);
	return ret;
}
